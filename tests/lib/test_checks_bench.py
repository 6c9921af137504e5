"""On the bench a map can be switched off for one run, and what went through each module is kept."""

import pytest
import torch
from torch import nn

from oneblock.checks import Adapter, Subject
from oneblock.checks.bench import Bench, is_map, switched_off

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

N, L, D, F = 2, 3, 5, 7


@pytest.fixture
def bench():
    """A network of two maps and a norm, and a dropout between them."""
    block = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, F), nn.Dropout(0.5), nn.Linear(F, D))
    return Bench(Subject(block.double(), D, Adapter()))


def test_what_each_module_was_given_and_gave_is_kept_in_order_and_in_copy(bench, fixed):
    y = bench.run(fixed(N, L, D))
    assert list(bench.seen) == ["0", "1", "2", "3"] and bench.maps == ["1", "3"]
    assert torch.equal(bench.seen["0"].given, fixed(N, L, D)) and torch.equal(bench.seen["3"].gave, y)
    assert torch.equal(bench.seen["2"].given, bench.seen["2"].gave), "dropout is off"
    bench.seen["3"].gave.zero_()
    assert y.any()


def test_a_map_is_off_for_one_run_only(bench, fixed):
    x, before = fixed(N, L, D), [value.clone() for value in bench.subject.block.parameters()]
    y, silent = bench.run(x), bench.run(x, off=["3"])
    assert y.any() and not silent.any() and not bench.run(x, off=["1", "3"]).any()
    assert torch.equal(bench.run(x), y)
    assert all(map(torch.equal, before, bench.subject.block.parameters()))


def test_a_map_is_on_again_after_an_exception(bench):
    with pytest.raises(RuntimeError), switched_off(bench.subject.block, ["1"]):
        assert not bench.modules["1"].weight.any()
        bench.run(torch.zeros(N, L, D + 1, dtype=torch.float64))
    assert bench.modules["1"].weight.any() and bench.modules["1"].bias.any()


@pytest.mark.parametrize(
    "module, due",
    [(nn.Linear(D, F), True), (nn.LayerNorm(D), False), (nn.Embedding(F, D), False), (nn.Conv1d(D, F, 1), False), (nn.GELU(), False)],
)
def test_a_map_has_one_matrix_and_looks_nothing_up(module, due):
    assert is_map(module) == due
