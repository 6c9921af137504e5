"""The stops are the run's own numbers, and each formula is what was computed."""

import pytest
import torch

from oneblock.blocks import PostNorm, PreNorm
from oneblock.errors import ArgumentError
from oneblock.tour import PRE_NORM, tour
from oneblock.trace import record
from oneblock.widgets import steps_view

N, L, H, D, F = 2, 5, 3, 6, 7


@pytest.fixture
def block(fixed):
    block = PreNorm(D, H, F, dropout=0.25).double().eval()
    for seed, parameter in enumerate(block.parameters(), start=1):
        parameter.data = fixed(*parameter.shape, seed=seed)
    return block


@pytest.fixture
def x(fixed):
    return fixed(N, L, D)


@pytest.fixture
def stops(block, x):
    return tour(record(block, x))


def test_the_stops_come_in_order_and_none_besides(stops):
    assert list(stops.tensors) == ["X", "X_normed", "A", "U", "Z", "Y"]
    assert stops.names == ("X_normed", "A", "U", "Z", "Y")


def test_each_formula_names_the_stops_that_are_read(stops):
    assert [f"{step.name} = {step.formula}" for step in stops.steps] == [
        "X_normed = LN₁(X)",
        "A = MHA(LN₁(X))",
        "U = X + A",
        "Z = FFN(LN₂(U))",
        "Y = U + Z",
    ]
    assert [list(step.reads.values()) for step in stops.steps] == [["X"], ["X_normed"], ["X", "A"], ["U"], ["U", "Z"]]


def test_each_formula_holds_when_the_blocks_parts_compute_it(stops, block, x):
    due = {
        "X": x,
        "X_normed": block.norm1(stops["X"]),
        "A": block.self_attn(stops["X_normed"]),
        "U": stops["X"] + stops["A"],
        "Z": block.process(block.norm2(stops["U"])),
        "Y": stops["U"] + stops["Z"],
    }
    for name, value in due.items():
        torch.testing.assert_close(stops[name], value, atol=1e-12, rtol=0)
    torch.testing.assert_close(stops["Y"], block(x), atol=1e-12, rtol=0)
    assert stops.result is not None and len({stops[name].sum().item() for name in due}) == 6


def test_one_sequence_of_a_batch_can_be_toured(block, x, stops):
    one = tour(record(block, x).pick(n=1))
    assert one.axes("Y") == ("L", "D") and torch.equal(one["Y"], stops["Y"][1])


def test_a_tour_is_a_view_of_six_stops(block, x):
    view = steps_view(tour(record(block, x).pick(n=0)))
    assert len(view.frame["steps"]) == 6
    assert view.frame["steps"][0]["shows"] == ["X"]
    assert [step["formula"] for step in view.frame["steps"][1:]] == [
        "LN₁(X)",
        "A = MHA(LN₁(X))",
        "U = X + A",
        "Z = FFN(LN₂(U))",
        "Y = U + Z",
    ]


@pytest.mark.parametrize("formula", ["FFN(LN₂({X}))", "FFN(LN₂({U}) + {A})", "FFN"])
def test_a_formula_that_hides_or_invents_a_source_is_refused(block, x, formula):
    wrong = {**PRE_NORM, "Z": ("z", formula)}
    with pytest.raises(ArgumentError, match=r"stops\['Z'\] must be a formula of U; got 'FFN"):
        tour(record(block, x), wrong)


def test_the_other_order_of_norm_and_sum_has_other_stops(x):
    with pytest.raises(ArgumentError, match=r"stops\['X_normed'\] must be a formula of U; got"):
        tour(record(PostNorm(D, H, F).double(), x))


def test_a_run_with_dropout_is_refused(block, x):
    message = r"trace must be of a run without dropout; got \['weights_dropped'.*call the block's eval\(\) before"
    with pytest.raises(ArgumentError, match=message):
        tour(record(block.train(), x))
