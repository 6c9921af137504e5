"""Whatever happens inside, a module and the random numbers are afterwards as they were."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def guard(block: nn.Module) -> Iterator[None]:
    """Restores the module on the way out, also after an exception.

    Restored are the values of parameters and buffers, their ``.grad`` and ``requires_grad``; the mode of every
    submodule, its hooks, its submodules and every other attribute that was set; and the random numbers of torch,
    NumPy and Python. What hooks of the reader's own wrote elsewhere, such as into a list, stays written.
    """
    numbers = random.getstate(), np.random.get_state()
    modules = [_Attributes(module) for module in block.modules()]
    tensors = [_Values(tensor) for tensor in (*block.parameters(), *block.buffers())]
    devices = {str(kept.tensor.device) for kept in tensors}
    with torch.random.fork_rng([device for device in devices if device.startswith("cuda")]):
        try:
            yield
        finally:
            for kept in (*modules, *tensors):
                kept.restore()
            random.setstate(numbers[0])
            np.random.set_state(numbers[1])


class _Attributes:
    """Everything a module holds, tables and lists with their entries: they are refilled, so that handles stay valid."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.held = module, dict(vars(module))
        self.entries = [(value, type(value)(value)) for value in self.held.values() if type(value) in (list, set)]
        self.tables = [(value, dict(value)) for value in self.held.values() if isinstance(value, dict)]

    def restore(self) -> None:
        for table, entries in ((vars(self.module), self.held), *self.tables):
            table.clear()
            table.update(entries)
        for entries, kept in self.entries:
            entries.clear()
            (entries.extend if isinstance(entries, list) else entries.update)(kept)


class _Values:
    """A tensor's numbers, and what autograd keeps beside them."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.values, self.learns = tensor, tensor.detach().clone(), tensor.requires_grad
        self.grad = tensor.grad
        self.slope = None if self.grad is None else self.grad.detach().clone()

    def restore(self) -> None:
        with torch.no_grad():
            if not torch.equal(self.tensor, self.values):
                self.tensor.copy_(self.values)
            if self.grad is not None:
                self.grad.copy_(self.slope)
        self.tensor.grad = self.grad
        if self.tensor.requires_grad != self.learns:
            self.tensor.requires_grad_(self.learns)
