"""LayerNorm and RMSNorm, written out: one line of the equation, one line of code, one named step."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from oneblock.errors import ArgumentError, ShapeError, check_dtype, check_eps, check_flag, check_size, check_tensor
from oneblock.precision import widened
from oneblock.trace import tap, written_out

FEATURES = (-1,)

# How each step is written, and one element of it over the features.
STEPS = {
    "mean": ("Σ {x} / D", "(Σd⟨{x[d]}⟩) / #D"),
    "centred": ("{x} − {mean}", "{x[d]} - {mean}"),
    "squares": ("{centred}²", "({centred[d]})²"),
    "variance": ("Σ {squares} / D", "(Σd⟨{squares[d]}⟩) / #D"),
    "std": ("√({variance} + {eps})", "√({variance} + {eps})"),
    "normed": ("{centred} / {std}", "{centred[d]} / {std}"),
    "x_squares": ("{x}²", "({x[d]})²"),
    "mean_square": ("Σ {x_squares} / D", "(Σd⟨{x_squares[d]}⟩) / #D"),
    "rms": ("√({mean_square} + {eps})", "√({mean_square} + {eps})"),
    "rms_normed": ("{x} / {rms}", "{x[d]} / {rms}"),
}


def layer_norm(
    x: Float[Tensor, "*shape"],
    gamma: Float[Tensor, "..."] | None = None,
    beta: Float[Tensor, "..."] | None = None,
    eps: float = 1e-5,
    axes: tuple[int, ...] = FEATURES,
) -> Float[Tensor, "*shape"]:
    """``LN(x) = γ ⊙ (x − μ) / √(σ² + ε) + β``, with ``μ`` and ``σ² = mean((x − μ)²)`` over ``axes``.

    Each row is measured by its own numbers: nothing is shared along the other axes and nothing is
    remembered between calls. Half precision is computed in float32 and rounded once, as torch does.
    A constant row gives β; with ``ε = 0`` it is 0/0 and gives NaN, as in torch.

    Args:
        x: ``[..., D]``.
        gamma, beta: as large as the normalised axes, ``[D]`` by default; ``None`` means 1 and 0.
        eps: ε, in the unit of ``x²``.
        axes: the axes to normalise over; the features by default.
    Returns:
        ``[..., D]`` in the dtype of ``x``.
    Raises:
        ArgumentError: naming the argument, for a tensor that is not floating, sizes that do not fit, an
            empty axis, ε that is negative or not finite, axes that repeat or do not exist.
    Source: Ba, Kiros, Hinton, *Layer Normalization*, 2016, arXiv:1607.06450; ``torch.nn.LayerNorm``.
    """
    check_tensor("x", x, "... D")
    check_eps(eps)
    axes = _axes_from_the_end(x, axes)
    scale, shift = _parameter("gamma", gamma, 1.0, x, axes), _parameter("beta", beta, 0.0, x, axes)
    step, wide = partial(_step, axes), widened(x)
    mean = step("mean", wide.mean(axes, keepdim=True), x=x)
    centred = step("centred", wide - mean, x=x, mean=mean)
    squares = step("squares", centred.square(), centred=centred)
    variance = step("variance", squares.mean(axes, keepdim=True), squares=squares)
    std = step("std", (variance + eps).sqrt(), variance=variance, eps=eps)
    normed = step("normed", centred / std, centred=centred, std=std)
    result = (normed * scale + shift).to(x.dtype)
    return _last_step(axes, "ln", result, normed=normed, gamma=gamma, beta=beta)


def rms_norm(
    x: Float[Tensor, "*shape"],
    gamma: Float[Tensor, "..."] | None = None,
    eps: float | None = None,
    axes: tuple[int, ...] = FEATURES,
) -> Float[Tensor, "*shape"]:
    """``RMSNorm(x) = γ ⊙ x / √(mean(x²) + ε)``, the mean over ``axes``; no mean is taken away.

    Half precision is computed in float32 and rounded once, as torch does. A row of zeros gives zeros;
    with ``ε = 0`` it is 0/0 and gives NaN, as in torch.

    Args:
        x: ``[..., D]``.
        gamma: as large as the normalised axes, ``[D]`` by default; ``None`` means 1.
        eps: ε, in the unit of ``x²``. ``None`` is the machine epsilon of the dtype computed in, as in
            torch: 1.2e-7 for float32 and everything narrower, 2.2e-16 for float64.
        axes: the axes to normalise over; the features by default.
    Returns:
        ``[..., D]`` in the dtype of ``x``.
    Raises:
        ArgumentError: as in :func:`layer_norm`.
    Source: Zhang, Sennrich, *Root Mean Square Layer Normalization*, 2019, arXiv:1910.07467;
        ``torch.nn.RMSNorm``.
    """
    check_tensor("x", x, "... D")
    axes = _axes_from_the_end(x, axes)
    scale = _parameter("gamma", gamma, 1.0, x, axes)
    step, wide = partial(_step, axes), widened(x)
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    check_eps(eps)
    x_squares = step("x_squares", wide.square(), x=x)
    mean_square = step("mean_square", x_squares.mean(axes, keepdim=True), x_squares=x_squares)
    rms = step("rms", (mean_square + eps).sqrt(), mean_square=mean_square, eps=eps)
    rms_normed = step("rms_normed", wide / rms, x=x, rms=rms)
    result = (rms_normed * scale).to(x.dtype)
    return _last_step(axes, "rmsnorm", result, normed=rms_normed, gamma=gamma, beta=None)


def llama_rms_norm(x: Float[Tensor, "*N D"], weight: Float[Tensor, " D"], eps: float = 1e-6) -> Float[Tensor, "*N D"]:
    """``γ ⊙ round(x / √(mean(x²) + ε))``: rounds to the dtype of ``x`` before γ, not after.

    Differs from :func:`rms_norm` in half precision only. Source: ``LlamaRMSNorm`` in Hugging Face
    transformers, ``models/llama/modeling_llama.py``.
    """
    check_tensor("x", x, "... D")
    check_tensor("weight", weight, "D", D=x.shape[-1])
    return weight * rms_norm(x, eps=eps)


def gemma_rms_norm(x: Float[Tensor, "*N D"], weight: Float[Tensor, " D"], eps: float = 1e-6) -> Float[Tensor, "*N D"]:
    """``(1 + w) ⊙ x / √(mean(x²) + ε)``: the weight is stored as its distance from 1, so zeros change nothing.

    Source: ``GemmaRMSNorm`` in Hugging Face transformers, ``models/gemma/modeling_gemma.py``, and its
    pull request 29402 on the order of the casts.
    """
    check_tensor("x", x, "... D")
    check_tensor("weight", weight, "D", D=x.shape[-1])
    return rms_norm(x, gamma=1 + widened(weight), eps=eps)


class LayerNorm(nn.Module):
    """:func:`layer_norm` over the last axis, with γ and β learned; torch's kernel where nothing is :func:`~oneblock.trace.written_out`.

    γ is ``weight`` and starts at 1, β is ``bias`` and starts at 0: the names of ``torch.nn.LayerNorm``, so
    that the two exchange state dicts. ``affine=False`` leaves both out, ``bias=False`` β alone. Kernel and formula
    part where ``(x − μ)²`` overflows, in float32 from about 1e19 on: the formula gives β, the kernel NaN.
    """

    def __init__(self, D: int, eps: float = 1e-5, affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        check_size("D", D)
        check_eps(eps)
        check_flag("affine", affine)
        check_flag("bias", bias)
        self.D, self.eps = D, eps
        self.weight = nn.Parameter(torch.ones(D)) if affine else None
        self.bias = nn.Parameter(torch.zeros(D)) if affine and bias else None

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        _check_input(self, x)
        if written_out():
            return layer_norm(x, self.weight, self.bias, self.eps)
        return functional.layer_norm(x, (self.D,), self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"D={self.D}, eps={self.eps}, affine={self.weight is not None}"


class RMSNorm(nn.Module):
    """:func:`rms_norm` over the last axis, with γ learned; torch's kernel where nothing is :func:`~oneblock.trace.written_out`.

    γ is ``weight`` and starts at 1: the name of ``torch.nn.RMSNorm``, so that the two exchange state dicts.
    ``affine=False`` leaves it out.
    """

    def __init__(self, D: int, eps: float | None = None, affine: bool = True) -> None:
        super().__init__()
        check_size("D", D)
        if eps is not None:
            check_eps(eps)
        check_flag("affine", affine)
        self.D, self.eps = D, eps
        self.weight = nn.Parameter(torch.ones(D)) if affine else None

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        _check_input(self, x)
        if written_out():
            return rms_norm(x, self.weight, self.eps)
        return functional.rms_norm(x, (self.D,), self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"D={self.D}, eps={self.eps}, affine={self.weight is not None}"


def _check_input(module: LayerNorm | RMSNorm, x: Tensor) -> None:
    """Half precision may meet parameters in float32, as in torch; any other mixture is a mistake."""
    check_tensor("x", x, "... D", "the last axis holds the features", D=module.D)
    for name in ("weight", "bias"):
        parameter = getattr(module, name, None)
        if parameter is not None and parameter.dtype != widened(x).dtype:
            check_dtype(name, parameter, x)


def _axes_from_the_end(x: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    """``axes`` as sorted negative numbers, so that one pair of axes is written in one way."""
    known = range(-x.ndim, x.ndim)
    if not isinstance(axes, tuple) or not axes or any(type(a) is not int or a not in known for a in axes):
        raise ArgumentError("axes", f"a tuple of axes of x, each from {-x.ndim} to {x.ndim - 1}", axes)
    from_the_end = sorted({axis % x.ndim - x.ndim for axis in axes})
    if len(from_the_end) < len(axes):
        raise ArgumentError("axes", "different axes of x", axes, f"x has {x.ndim} axes")
    if 0 in (x.shape[axis] for axis in from_the_end):
        raise ShapeError("x", f"floating with no axis of size 0 among axes {tuple(from_the_end)}", x)
    return tuple(from_the_end)


def _parameter(name: str, value: Tensor | None, absent: float, x: Tensor, axes: tuple[int, ...]) -> Tensor | float:
    """γ or β, shaped to act along ``axes``; a missing one is the number that changes nothing."""
    if value is None:
        return absent
    letters = "D" if axes == FEATURES else " ".join(f"n{-axis}" for axis in axes)
    sizes = {letter: x.shape[axis] for letter, axis in zip(letters.split(), axes, strict=True)}
    check_tensor(name, value, letters, f"it has the sizes of x along axes {axes}", **sizes)
    return value.reshape([x.shape[axis] if axis in axes else 1 for axis in range(-x.ndim, 0)])


def _step(axes: tuple[int, ...], name: str, value: Tensor, **reads: object) -> Tensor:
    formula, worked = STEPS[name]
    if axes != FEATURES:
        formula, worked = formula.replace("/ D", "/ n"), ""
    return tap(name, value, formula, worked, **reads)


def _last_step(axes: tuple[int, ...], name: str, value: Tensor, **reads: Tensor | None) -> Tensor:
    """γ and β are written where there are any."""
    formula, worked = "{normed}", "{normed[d]}"
    if reads["gamma"] is not None:
        formula, worked = "{gamma} ⊙ " + formula, "{gamma[d]}·" + worked
    if reads["beta"] is not None:
        formula, worked = formula + " + {beta}", worked + " + {beta[d]}"
    reads = {key: read for key, read in reads.items() if read is not None}
    return tap(name, value, formula, worked if axes == FEATURES else "", **reads)
