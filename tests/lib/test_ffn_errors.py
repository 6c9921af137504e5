"""What is refused, by the library's own messages."""

import pytest
import torch

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.ffn import FFN, SwiGLU, ffn, matched_width, swiglu
from oneblock.trace import record

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

MISFITS = {
    "W1": r"floating \[F, D\] = \[F, 3\]; got float64 \[5, 2\]; a weight is \[out, in\], as nn.Linear stores it",
    "b1": r"floating \[F\] = \[5\]; got float64 \[4\]",
    "W2": r"floating \[D, F\] = \[3, 5\]; got float64 \[3, 4\]; a weight is \[out, in\]",
    "b2": r"floating \[D\] = \[3\]; got float64 \[2\]",
    "W_gate": r"floating \[F, D\] = \[F, 3\]; got float64 \[5, 2\]; a weight is \[out, in\]",
    "W_up": r"floating \[F, D\] = \[5, 3\]; got float64 \[5, 2\]; a weight is \[out, in\]",
    "W_down": r"floating \[D, F\] = \[3, 5\]; got float64 \[3, 4\]; a weight is \[out, in\]",
    "b_gate": r"floating \[F\] = \[5\]; got float64 \[4\]",
    "b_up": r"floating \[F\] = \[5\]; got float64 \[4\]",
    "b_down": r"floating \[D\] = \[3\]; got float64 \[2\]",
}


@pytest.fixture
def calls(fixed, ffn_weights, swiglu_weights):
    """For each parameter, a good call of the function that takes it."""
    plain = dict(zip(("W1", "b1", "W2", "b2"), ffn_weights, strict=True))
    names = ("W_gate", "W_up", "W_down", "b_gate", "b_up", "b_down")
    gated = dict(zip(names, swiglu_weights, strict=True))
    x = fixed(2, 7, 3)
    return {name: (ffn, {"x": x, **plain}) for name in plain} | {name: (swiglu, {"x": x, **gated}) for name in gated}


@pytest.mark.parametrize("name", MISFITS)
def test_a_parameter_one_number_short_is_named(calls, name):
    function, arguments = calls[name]
    with pytest.raises(ShapeError, match=rf"^{name} must be {MISFITS[name]}"):
        function(**arguments | {name: arguments[name][..., :-1]})


@pytest.mark.parametrize("name", MISFITS)
def test_a_parameter_of_whole_numbers_is_named(calls, name):
    function, arguments = calls[name]
    with pytest.raises(DtypeError, match=rf"^{name} must be floating .*; got int64 .*; convert it with"):
        function(**arguments | {name: arguments[name].long()})


@pytest.mark.parametrize("name", MISFITS)
def test_a_parameter_of_another_precision_is_named(calls, name):
    function, arguments = calls[name]
    due = rf"^{name} must be float64, the dtype of x; got float32 .*; bring the module and its input to one dtype$"
    with pytest.raises(DtypeError, match=due):
        function(**arguments | {name: arguments[name].float()})


@pytest.mark.parametrize("name", ["W1", "W_gate"])
def test_rows_that_are_not_floating_or_have_no_features_are_refused(calls, name):
    function, arguments = calls[name]
    with pytest.raises(DtypeError, match=r"^x must be floating \[\.\.\., D\]; got int64 \[2, 7, 3\]; .*embedding"):
        function(**arguments | {"x": torch.ones(2, 7, 3, dtype=torch.int64)})
    with pytest.raises(ShapeError, match=r"^x must be .* no axis of size 0; got float32 \[7, 0\]"):
        function(**arguments | {"x": torch.zeros(7, 0)})
    with pytest.raises(ShapeError, match=rf"^{name} must be .* no axis of size 0; got float64 \[0, 3\]"):
        function(**arguments | {name: torch.zeros(0, 3, dtype=torch.float64)})


@pytest.mark.parametrize("module", [FFN(3, 5), SwiGLU(3, 5)], ids=["FFN", "SwiGLU"])
def test_another_width_than_the_modules_is_refused(module):
    due = r"^x must be floating \[\.\.\., D\] = \[\.\.\., 3\]; got float32 \[2, 3, 7\]; the last axis holds the features$"
    with pytest.raises(ShapeError, match=due):
        module(torch.zeros(2, 3, 7))


def test_wrong_settings_are_named():
    for module in (FFN, SwiGLU):
        with pytest.raises(ArgumentError, match=r"^D must be a whole number ≥ 1; got 0"):
            module(0, 5)
        with pytest.raises(ArgumentError, match=r"^F must be a whole number ≥ 1; got 2.5"):
            module(3, 2.5)
        with pytest.raises(ArgumentError, match=r"^bias must be True or False; got 'no'"):
            module(3, 5, bias="no")
    with pytest.raises(ArgumentError, match=r"^activation must be one of relu, .*; got 'gleu'"):
        FFN(3, 5, activation="gleu")
    with pytest.raises(ArgumentError, match=r"^dropout must be a number in \[0, 1\); got 1.0"):
        FFN(3, 5, dropout=1.0)
    with pytest.raises(ArgumentError, match=r"^F must be a whole number ≥ 1; got -3"):
        matched_width(-3)


def test_an_unknown_activation_is_answered_with_those_there_are(fixed, ffn_weights):
    with pytest.raises(ArgumentError, match=r"^activation must be one of relu, gelu, gelu_tanh, silu, or a callable; got 'tanh'"):
        ffn(fixed(3), *ffn_weights, activation="tanh")


@pytest.mark.parametrize(
    "phi, came",
    [
        (torch.nn.GELU, "a GELU"),
        (lambda h: None, "a NoneType"),
        (lambda h: (h,), "a tuple"),
        (lambda h: h[..., :1], r"float64 \[2, 7, 1\]"),
        (lambda h: h.mean(1, keepdim=True), r"float64 \[2, 1, 5\]"),
        (lambda h: h.mT, r"float64 \[2, 5, 7\]"),
    ],
)
@pytest.mark.parametrize("call", [lambda module, x: module(x), record], ids=["by torch's kernels", "written out"])
def test_an_activation_that_gives_something_else_than_a_number_for_each_is_named(fixed, phi, came, call):
    due = rf"^activation must be a callable to floating \[2, 7, 5\], the shape of h; got {came}.*; it acts on each number"
    with pytest.raises(ArgumentError, match=due):
        call(FFN(3, 5, phi).double(), fixed(2, 7, 3))


@pytest.mark.parametrize("phi, came", [(torch.Tensor.float, "float32"), (lambda h: h > 0, "bool")])
def test_an_activation_keeps_the_dtype(fixed, phi, came):
    due = rf"^activation must be float64, the dtype of h; got {came} \[2, 7, 5\]; it gives numbers of the dtype it is given$"
    with pytest.raises(DtypeError, match=due):
        FFN(3, 5, phi).double()(fixed(2, 7, 3))
