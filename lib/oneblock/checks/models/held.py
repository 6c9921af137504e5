"""What a module holds, registered or not: a Python list hides its modules from ``parameters()`` and from ``eval()``."""

from collections.abc import Iterator

from torch import Tensor, nn


def held(module: nn.Module) -> dict[str, nn.Module]:
    """The module and all that can be reached through attributes, lists, tuples and tables, by the way that leads there."""
    found: dict[str, nn.Module] = {}
    waiting = [("", module)]
    seen: set[int] = set()
    while waiting:
        name, one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            found[name] = one
            waiting += [(f"{name}.{key}".lstrip("."), part) for key, part in _inside(vars(one))]
    return found


def hidden(module: nn.Module) -> dict[str, nn.Module]:
    """Those of :func:`held` that torch does not know of."""
    known = {id(part) for part in module.modules()}
    return {name: part for name, part in held(module).items() if id(part) not in known}


def parameters(module: nn.Module) -> Iterator[Tensor]:
    """Every parameter of all that is :func:`held`."""
    for part in held(module).values():
        yield from part.parameters(recurse=False)


def _inside(values: dict, depth: int = 0) -> Iterator[tuple[str, nn.Module]]:
    """The modules in a table, in its lists and tables too; torch's own table of children adds no word to a name."""
    for key, value in values.items():
        if isinstance(value, nn.Module):
            yield str(key), value
        elif depth < 3 and isinstance(value, (dict, list, tuple)):
            table = value if isinstance(value, dict) else dict(enumerate(value))
            for name, part in _inside(table, depth + 1):
                yield name if key == "_modules" else f"{key}.{name}", part
