import pytest
import torch

from oneblock.errors import DtypeError, ShapeError
from oneblock.residual import residual
from oneblock.trace import record

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def test_the_sum_is_taken_element_by_element():
    y = residual(torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([0.3, -0.1], dtype=torch.float64))
    assert y.tolist() == pytest.approx([1.3, 1.9], abs=1e-15)


def test_both_terms_get_the_whole_gradient(fixed):
    x, increment = fixed(2, 3, 5).requires_grad_(), fixed(2, 3, 5, seed=1).requires_grad_()
    upstream = fixed(2, 3, 5, seed=2)
    residual(x, increment).backward(upstream)
    assert torch.equal(x.grad, upstream) and torch.equal(increment.grad, upstream)


def test_the_input_is_left_as_it_was(fixed):
    x = fixed(3, 5)
    before = x.clone()
    residual(x, fixed(3, 5, seed=1))
    assert torch.equal(x, before)


@pytest.mark.parametrize("shape", [(2, 3, 1), (2, 3, 7), (3, 5), (5,), (1, 3, 5), (2, 1, 5), (3, 2, 5), (2, 3, 5, 1), ()])
def test_a_shape_that_torch_would_stretch_or_refuse_is_refused(fixed, shape):
    due = r"^increment must be floating \[2, 3, 5\], the shape of x; got float64 .*; the sum is element by element"
    with pytest.raises(ShapeError, match=due):
        residual(fixed(2, 3, 5), fixed(*shape))


@pytest.mark.parametrize("argument", ["x", "increment"])
def test_whole_numbers_are_refused(fixed, argument):
    terms = {"x": fixed(3, 5), "increment": fixed(3, 5), argument: torch.ones(3, 5, dtype=torch.int64)}
    with pytest.raises(DtypeError, match=rf"^{argument} must be floating .*; got int64 \[3, 5\]"):
        residual(**terms)


def test_two_dtypes_are_refused_but_under_autocast(fixed):
    x, increment = fixed(3, 5, dtype=torch.float32), fixed(3, 5, seed=1).bfloat16()
    with pytest.raises(DtypeError, match=r"^increment must be float32, the dtype of x; got bfloat16 \[3, 5\]; .* cast one"):
        residual(x, increment)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(residual(x, increment), x + increment.float())


def test_an_empty_row_is_refused():
    with pytest.raises(ShapeError, match=r"^x must be .* no axis of size 0; got float32 \[3, 0\]"):
        residual(torch.zeros(3, 0), torch.zeros(3, 0))


def test_it_works_under_torch_func(fixed):
    x = fixed(2, 5)
    assert torch.equal(torch.func.jacrev(lambda row: residual(row, 2 * row))(x[0]), 3 * torch.eye(5).double())
    assert torch.equal(torch.vmap(residual)(x, x), 2 * x)


def test_its_trace_has_the_one_step_y(fixed):
    trace = record(residual, fixed(3, 5), fixed(3, 5, seed=1))
    (step,) = trace.steps
    assert (step.name, step.formula, step.worked) == ("y", "x + Δ", "{x[d]} + {increment[d]}")
    assert torch.equal(trace["y"], trace.result)
