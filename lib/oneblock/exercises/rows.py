"""Exercises on one row: feed-forward network, residual, norms, gate."""

import torch
from torch import Tensor
from torch.nn.functional import gelu, silu

from oneblock import ffn as library
from oneblock.exercises.exercise import Exercise, numbers, several
from oneblock.jacobians import layer_norm_jacobian
from oneblock.norms import layer_norm, rms_norm
from oneblock.residual import residual


def _relu_ffn(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> Tensor:
    return library.ffn(x, W1, b1, W2, b2, "relu")


def _with_residual(x: Tensor, *weights: Tensor) -> Tensor:
    return residual(x, _relu_ffn(x, *weights))


def _ffn_cases() -> dict[str, tuple]:
    weights = [(5, 3), (5,), (3, 5), (3,)]
    return {
        "a row": several((3,), *weights),
        "a batch": several((2, 7, 3), *weights),
        "a batch in float32": several((2, 7, 3), *weights, dtype=torch.float32),
    }


_FFN_WRONG = {
    "activation_forgotten": lambda x, W1, b1, W2, b2: (x @ W1.mT + b1) @ W2.mT + b2,
    "no_bias": lambda x, W1, b1, W2, b2: (x @ W1.mT).relu() @ W2.mT,
    "activated_twice": lambda x, *weights: _relu_ffn(x, *weights).relu(),
}
FFN = Exercise("x W1 b1 W2 b2", _relu_ffn, _ffn_cases, _FFN_WRONG)

RESIDUAL_BLOCK = Exercise(
    "x W1 b1 W2 b2",
    _with_residual,
    _ffn_cases,
    {
        "no_residual": _relu_ffn,
        "subtracted": lambda x, *weights: x - _relu_ffn(x, *weights),
        "activated_sum": lambda x, *weights: _with_residual(x, *weights).relu(),
        "activation_forgotten": lambda x, *weights: x + _FFN_WRONG["activation_forgotten"](x, *weights),
    },
)


def _layer_norm_cases() -> dict[str, tuple]:
    affine = numbers(5, seed=1), numbers(5, seed=2)
    batch = numbers(2, 3, 5)
    return {
        "a batch": (batch, *affine, 0.1),
        "one row": (batch[0, 0], *affine, 0.1),
        "equal features": (torch.full((2, 5), 3.0, dtype=torch.float64), *affine, 1e-5),
        "float32": (*(one.float() for one in (batch, *affine)), 1e-5),
    }


def _normed(x: Tensor, eps: float, axis: int = -1, less: int = 0) -> Tensor:
    d = x - x.mean(axis, keepdim=True)
    return d / (d.square().sum(axis, keepdim=True) / (x.shape[axis] - less) + eps).sqrt()


LAYER_NORM = Exercise(
    "x gamma beta eps",
    lambda x, gamma, beta, eps: layer_norm(x, gamma, beta, eps=eps),
    _layer_norm_cases,
    {
        "n_minus_one": lambda x, gamma, beta, eps: gamma * _normed(x, eps, less=1) + beta,
        "over_positions": lambda x, gamma, beta, eps: gamma * _normed(x, eps, axis=0) + beta,
        "eps_outside": lambda x, gamma, beta, eps: gamma * _centred(x) / (x.var(-1, False, keepdim=True).sqrt() + eps) + beta,
        "as_copied": lambda x, gamma, beta, eps: gamma * _centred(x) / (x.std(-1, keepdim=True) + eps) + beta,
        "by_variance": lambda x, gamma, beta, eps: gamma * _centred(x) / (x.var(-1, False, keepdim=True) + eps) + beta,
        "mean_kept": lambda x, gamma, beta, eps: gamma * x / (x.var(-1, False, keepdim=True) + eps).sqrt() + beta,
        "no_affine": lambda x, gamma, beta, eps: _normed(x, eps),
    },
)


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def _mean_square(x: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True)


RMS_NORM = Exercise(
    "x gamma eps",
    lambda x, gamma, eps: rms_norm(x, gamma, eps=eps),
    lambda: {case: (x, gamma, eps) for case, (x, gamma, _, eps) in _layer_norm_cases().items()},
    {
        "centred_too": lambda x, gamma, eps: gamma * _normed(x, eps),
        "not_divided": lambda x, gamma, eps: gamma * x / (x.square().sum(-1, keepdim=True) + eps).sqrt(),
        "eps_outside": lambda x, gamma, eps: gamma * x / (_mean_square(x).sqrt() + eps),
        "no_root": lambda x, gamma, eps: gamma * x / (_mean_square(x) + eps),
        "no_affine": lambda x, gamma, eps: x / (_mean_square(x) + eps).sqrt(),
    },
)


def _jacobian(x: Tensor, eps: float, shift: float = 1.0, stretch: float = 1.0) -> Tensor:
    """With the projections that take away a common shift and a common stretch, and divided by s."""
    D, x_hat = x.numel(), _normed(x, eps)
    bent = torch.eye(D, dtype=x.dtype) - shift / D - stretch * torch.outer(x_hat, x_hat) / D
    return bent / (x.var(correction=0) + eps).sqrt()


LAYER_NORM_JACOBIAN = Exercise(
    "x eps",
    lambda x, eps: layer_norm_jacobian(x, eps=eps),
    lambda: {"a row": (3 * numbers(7), 0.1), "another width": (numbers(5, seed=1), 1e-5)},
    {
        "shift_kept": lambda x, eps: _jacobian(x, eps, shift=0.0),
        "stretch_kept": lambda x, eps: _jacobian(x, eps, stretch=0.0),
        "not_divided_by_s": lambda x, eps: _jacobian(x, eps) * (x.var(correction=0) + eps).sqrt(),
    },
)

SILU = Exercise(
    "x",
    silu,
    lambda: {"numbers around 0": (3 * numbers(7),), "a batch in float32": (numbers(2, 3, 5).float(),), "far out": (1000 * numbers(7).float(),)},
    {"sigmoid_only": torch.sigmoid, "relu_instead": torch.relu, "gelu_instead": gelu},
)


def _swiglu_cases() -> dict[str, tuple]:
    weights = [(5, 3), (5, 3), (3, 5)]
    return {"a row": several((3,), *weights), "a batch in float32": several((2, 7, 3), *weights, dtype=torch.float32)}


SWIGLU = Exercise(
    "x W_gate W_up W_down",
    library.swiglu,
    _swiglu_cases,
    {
        "branches_swapped": lambda x, g, u, down: library.swiglu(x, u, g, down),
        "added": lambda x, g, u, down: (silu(x @ g.mT) + x @ u.mT) @ down.mT,
        "only_content": lambda x, g, u, down: (x @ u.mT) @ down.mT,
        "sigmoid_only": lambda x, g, u, down: ((x @ g.mT).sigmoid() * (x @ u.mT)) @ down.mT,
        "relu_instead": lambda x, g, u, down: ((x @ g.mT).relu() * (x @ u.mT)) @ down.mT,
    },
)
