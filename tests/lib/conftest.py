"""What every test of the library shares: fixed tensors, formulas read as a reader reads them."""

import importlib.util
import math
import re
import zlib
from itertools import product
from pathlib import Path

import pytest
import torch
from jaxtyping import config
from torch import nn

from oneblock.trace import record


@pytest.fixture(autouse=True)
def seeded():
    """A block that a test builds without a seed of its own has the same first values in every run."""
    torch.manual_seed(0)


@pytest.fixture
def script():
    """``script("depth_study")``: the script that makes a stored study, as a module; nothing is run."""

    def loaded(name):
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "book" / "data" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loaded


@pytest.fixture
def as_readers_run_it():
    """Without the check of signatures, so that the library's own messages are reached."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(params=["by torch's kernels", "written out"])
def run(request):
    """``run(module, x)``: what a module gives, by torch's kernels and by the formulas that a recording runs."""

    def recorded(module, *args, **kwargs):
        return record(module, *args, **kwargs).result

    return recorded if request.param == "written out" else lambda module, *args, **kwargs: module(*args, **kwargs)


@pytest.fixture
def fixed():
    """``fixed(2, 3, 5)``: a tensor of that shape, the same in every run, without pattern, between −1 and 1."""

    def tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.rand(shape, generator=generator, dtype=torch.float64).mul(2).sub(1).to(dtype)

    return tensor


@pytest.fixture
def filled(fixed):
    """``filled(module)``: in float64 and ``eval()``, each parameter fixed by its name, none at its start value, γ around 1."""

    def fill(module: nn.Module) -> nn.Module:
        for name, parameter in module.double().named_parameters():
            gamma = "norm" in name and name.endswith("weight")
            parameter.data = fixed(*parameter.shape, seed=zlib.crc32(name.encode())) / 2 + gamma
        return module.eval()

    return fill


@pytest.fixture
def alike(filled):
    """``alike(wrong, right)``: both classes built with the same sizes and the same parameters, as far as they have them."""

    def pair(wrong: type, right: type, D: int = 21, H: int = 3, F: int = 11, **options: object) -> tuple[nn.Module, nn.Module]:
        return filled(wrong(D=D, H=H, F=F, **options)), filled(right(D=D, H=H, F=F, **options))

    return pair


@pytest.fixture
def ffn_weights(fixed):
    """``W1 b1 W2 b2`` of a network 3 → 5 → 3, scaled as a fresh ``nn.Linear`` is."""
    return [fixed(5, 3, seed=1) / 2, fixed(5, seed=2), fixed(3, 5, seed=3) / 2, fixed(3, seed=4)]


@pytest.fixture
def swiglu_weights(fixed):
    """``W_gate W_up W_down b_gate b_up b_down`` of a gated network 3 → 5 → 3."""
    shapes = [(5, 3), (5, 3), (3, 5), (5,), (5,), (3,)]
    return [fixed(*shape, seed=seed) / 2 for seed, shape in enumerate(shapes, start=1)]


class _Mixture(nn.Module):
    """Sends each row to the ``active`` experts with the highest scores, and weighs what they give."""

    def __init__(self, D: int, experts: list[nn.Module], active: int) -> None:
        super().__init__()
        self.router = nn.Linear(D, len(experts), bias=False)
        self.experts, self.active = nn.ModuleList(experts), active

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(0, -2)
        weights, chosen = self.router(rows).softmax(-1).topk(self.active)
        result = torch.zeros_like(rows)
        for k, expert in enumerate(self.experts):
            at, rank = (chosen == k).nonzero(as_tuple=True)
            result = result.index_add(0, at, weights[at, rank, None] * expert(rows[at]))
        return result.view_as(x)


@pytest.fixture
def mixture():
    """``mixture(D, experts, active)``: a mixture of experts as small as one can be."""
    return _Mixture


@pytest.fixture
def worked_out():
    """``worked_out(trace, step)``: every element of one position's step, from its formula and from its tensor.

    The formula's braces are filled with the trace's numbers and the rest is read by Python, not by torch.
    """
    return _worked_out


def _worked_out(trace, step, **functions):
    value, letters = trace[step.name], trace.letters(step.name)
    indices = list(product(*map(range, value.shape)))
    from_formula = [_evaluate(step.worked, trace, dict(zip(letters, i, strict=True)), functions) for i in indices]
    return from_formula, [value[i].item() for i in indices]


def _evaluate(worked, trace, at, functions):
    sizes = {
        letter: size
        for name, tensor in trace.tensors.items()
        for letter, size in zip(trace.letters(name), tensor.shape, strict=True)
    }

    def fill(text, at):
        def number(match):
            unpicked = [letter for letter in (match[2] or "").split(",") if letter in trace.letters(match[1])]
            index = tuple(at[letter] for letter in unpicked)
            return f"({trace[match[1]][index].item()!r})"

        return re.sub(r"\{([\w.]+)(?:\[([a-z,]+)\])?\}", number, text)

    def spell_out(match):
        return "(" + " + ".join(fill(match[2], {**at, match[1]: i}) for i in range(sizes[match[1]])) + ")"

    text = fill(re.sub(r"Σ([a-z])⟨([^⟩]*)⟩", spell_out, worked), at)
    text = re.sub(r"#([A-Z])", lambda match: str(sizes[match[1].lower()]), text)
    text = re.sub(r"√(\d+)", r"√(\1)", text)
    for sign, python in {"·": "*", "²": "**2", "√": "sqrt", "φ": "phi"}.items():
        text = text.replace(sign, python)
    known = {"sqrt": math.sqrt, "exp": math.exp, "inf": math.inf}
    known |= {"sigmoid": lambda number: 1 / (1 + math.exp(-number)), **functions}
    return eval(text, {"__builtins__": {}}, known)
