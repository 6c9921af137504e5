import pytest
import torch

from oneblock.ffn import ffn, swiglu
from oneblock.masks import masked_mean
from oneblock.misreadings import MISREADINGS, misread
from oneblock.norms import layer_norm, rms_norm
from oneblock.residual import residual
from oneblock.trace import record


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


X, W, B, V = numbers(1, 2), numbers([1, -1], [0.5, 0.5]), numbers(0.25, -2), numbers([2, 0], [0, -1])


def of(trace, name):
    return {mistake: wrong.tolist() for mistake, wrong in misread(trace, trace.step(name)).items()}


def test_the_mistakes_of_a_feed_forward_network():
    trace = record(lambda: residual(X, ffn(X, W, B, V, B)))
    assert trace["h"].tolist() == [-0.75, -0.5]
    assert of(trace, "h") == {"transposed": [2.25, -2], "no_bias": [-1, 1.5]}
    expected = {"no_activation": [-0.75, -0.5], "absolute": [0.75, 0.5], "relu_chosen": [0, 0]}
    assert of(trace, "a") == expected
    assert of(trace, "z") == {"activation_forgotten": [-1.25, -1.5], "transposed": [0.25, -2], "no_bias": [0, 0]}
    assert of(trace, "y") == {"no_residual": [0.25, -2], "subtracted": [0.75, 4], "no_increment": [1, 2]}


def test_the_mistakes_of_a_layer_norm():
    trace = record(layer_norm, numbers(-1, 5, 5, 7), eps=0.0)
    assert of(trace, "mean") == {"not_divided": [16]}
    assert of(trace, "centred") == {"reversed": [5, -1, -1, -3]}
    assert of(trace, "squares") == {"not_squared": [-5, 1, 1, 3], "doubled": [-10, 2, 2, 6]}
    assert of(trace, "variance") == {"n_minus_one": [12], "not_divided": [36], "rooted": [3]}
    assert of(trace, "std") == {"no_root": [9], "eps_outside": [3]}
    assert of(trace, "normed") == {"by_variance": [-5 / 9, 1 / 9, 1 / 9, 1 / 3]}


def test_epsilon_outside_the_root_is_told_from_epsilon_inside():
    trace = record(layer_norm, numbers(1, 3), eps=3.0)
    assert trace["std"].tolist() == [2]
    assert of(trace, "std") == {"no_root": [4], "eps_outside": [4]}
    assert of(record(layer_norm, numbers(1, 5), eps=0.5), "std") == {"no_root": [4.5], "eps_outside": [2.5]}
    assert of(record(rms_norm, numbers(1, 7), eps=0.5), "rms") == {"no_root": [25.5], "eps_outside": [5.5]}


def test_the_mistakes_of_an_rms_norm():
    trace = record(rms_norm, numbers(-1, 5, 5, 7), eps=0.0)
    assert trace["rms"].tolist() == [5]
    assert of(trace, "mean_square") == {"not_divided": [100], "rooted": [5]}
    assert of(trace, "rms") == {"no_root": [25], "eps_outside": [5]}


def test_the_mistakes_of_a_gate():
    trace = record(swiglu, numbers(0, 2), W, W, V)
    gate = trace["gate"]
    assert gate.tolist() == [-2, 1]
    assert of(trace, "silu") == {"sigmoid_only": gate.sigmoid().tolist(), "relu_instead": [0, 1]}
    assert of(trace, "gated") == {"added": (trace["silu"] + gate).tolist(), "only_content": [-2, 1]}
    assert of(trace, "z") == {}  # the mistakes of a plain network's z do not apply


def test_the_mistakes_of_a_masked_mean():
    rows = torch.tensor([[[1.0, 4.0], [3.0, -2.0], [9.0, 9.0], [7.0, -7.0]]])
    trace = record(masked_mean, rows, torch.tensor([[True, True, False, False]])).pick(n=0)
    assert trace["pooled"].tolist() == [2, 1]
    assert of(trace, "total") == {"padding_summed": [20, 4]}
    assert of(trace, "count") == {"padding_counted": [4]}
    assert of(trace, "pooled") == {"not_averaged": [4, 2], "by_length": [1, 0.5]}


def test_of_one_picked_row_no_sum_is_misread(fixed):
    def averaged(x):
        return masked_mean(layer_norm(x), torch.ones(2, 3, dtype=torch.bool))

    trace = record(averaged, fixed(2, 3, 5))
    assert set(of(trace.pick(n=0), "total")) == {"padding_summed"}
    assert of(trace.at(0, 1), "total") == {}


def test_a_transposed_matrix_that_is_not_square_cannot_be_multiplied(fixed):
    trace = record(ffn, fixed(5), fixed(7, 5), fixed(7), fixed(5, 7), fixed(5))
    assert "transposed" not in of(trace, "h") and "transposed" not in of(trace, "z")


def test_without_a_bias_there_is_none_to_forget(fixed):
    trace = record(ffn, fixed(5), fixed(7, 5), None, fixed(5, 7), None)
    assert of(trace, "h") == {} and "no_bias" not in of(trace, "z")


def test_an_activation_can_be_forgotten_without_a_bias():
    trace = record(ffn, X, W, B, V, None)
    assert of(trace, "z") == {"activation_forgotten": [-1.5, 0.5], "transposed": [0, 0]}


def test_a_step_without_known_mistakes_has_none(fixed):
    assert of(record(layer_norm, fixed(5)), "ln") == {}


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)], ids=["row", "sequence", "batch"])
def test_a_wrong_result_has_the_shape_of_the_right_one(fixed, shape):
    trace = record(lambda x: residual(x, ffn(x, fixed(5, 5), fixed(5), fixed(5, 5), fixed(5))), fixed(*shape))
    wrong = {step.name: misread(trace, step) for step in trace.steps}
    assert {name: set(found) for name, found in wrong.items()} == {n: set(MISREADINGS[n]) for n in ("h", "a", "z", "y")}
    assert all(tensor.shape == trace[name].shape for name, found in wrong.items() for tensor in found.values())
