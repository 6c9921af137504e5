"""Has each part parameters of its own?"""

from collections import defaultdict
from collections.abc import Callable

from torch import nn

from oneblock.checks.finding import Finding, judged, listed, not_applicable
from oneblock.checks.probes import quiet, rows
from oneblock.checks.subject import Subject


def parameter_sharing(subject: Subject) -> Finding:
    """No parameter has two names, and no module with parameters is called twice in one forward pass."""
    if not any(True for _ in subject.block.parameters()):
        return not_applicable("parameter_sharing")
    silent = quiet(subject)
    return judged_alone("parameter_sharing", silent.block, lambda: silent(rows(subject)))


def judged_alone(check: str, module: nn.Module, call: Callable[[], object]) -> Finding:
    """Fails if a parameter of the module has two names, or if a part with parameters runs twice in ``call``."""
    shared, again = two_names(module), _called_again(module, call)
    measured = {"parameters with two names": float(len(shared)), "modules called twice": float(len(again))}
    return judged(check, measured, 0.0, "; ".join(filter(None, (listed(shared), listed(again)))))


def two_names(block: nn.Module) -> list[str]:
    """Also where two parameters are windows on the same numbers."""
    names = defaultdict(list)
    for name, parameter in block.named_parameters(remove_duplicate=False):
        names[parameter.untyped_storage().data_ptr(), parameter.storage_offset(), parameter.numel()].append(name)
    return [" = ".join(same) for (_, _, size), same in names.items() if len(same) > 1 and size]


def _called_again(block: nn.Module, call: Callable[[], object]) -> list[str]:
    calls = defaultdict(int)
    for name, module in block.named_modules():
        if name and any(True for _ in module.parameters(recurse=False)):
            module.register_forward_hook(lambda *_, name=name: calls.__setitem__(name, calls[name] + 1))
    call()
    return [f"{name} called {count} times" for name, count in calls.items() if count > 1]
