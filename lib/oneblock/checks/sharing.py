"""Has each part parameters of its own?"""

from collections import defaultdict

from torch import nn

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.probes import quiet, rows
from oneblock.checks.subject import Subject


def parameter_sharing(subject: Subject) -> Finding:
    """No parameter has two names, and no module with parameters is called twice in one forward pass."""
    if not any(True for _ in subject.block.parameters()):
        return not_applicable("parameter_sharing")
    shared, again = _two_names(subject.block), _called_again(quiet(subject))
    measured = {"parameters with two names": float(len(shared)), "modules called twice": float(len(again))}
    return judged("parameter_sharing", measured, 0.0, "; ".join([*shared, *again]))


def _two_names(block: nn.Module) -> list[str]:
    """Also where two parameters are windows on the same numbers."""
    names = defaultdict(list)
    for name, parameter in block.named_parameters(remove_duplicate=False):
        names[parameter.untyped_storage().data_ptr(), parameter.storage_offset(), parameter.numel()].append(name)
    return [" = ".join(same) for (_, _, size), same in names.items() if len(same) > 1 and size]


def _called_again(subject: Subject) -> list[str]:
    calls = defaultdict(int)
    for name, module in subject.block.named_modules():
        if name and any(True for _ in module.parameters(recurse=False)):
            module.register_forward_hook(lambda *_, name=name: calls.__setitem__(name, calls[name] + 1))
    subject(rows(subject))
    return [f"{name} called {count} times" for name, count in calls.items() if count > 1]
