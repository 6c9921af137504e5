"""Numbers as text: rounded once, in Python, so that every reader of a figure sees the same digits."""

import math

from torch import Tensor


def format_number(value: float, digits: int = 6) -> str:
    """``value`` rounded to ``digits`` significant digits, in its shortest form: ``-1.5``, ``1e-5``."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else ("0" if float(text) == 0 else text)


def format_tensor(tensor: Tensor, digits: int = 6) -> list[str]:
    """Every element of a tensor as text, row by row.

    Rounding noise is shown as 0: what is below 1e-14 of the tensor's largest element (or of 1).
    """
    values = tensor.detach().double().flatten().tolist()
    noise = 1e-14 * max([1.0, *(abs(v) for v in values if math.isfinite(v))])
    return [format_number(0.0 if abs(v) < noise else v, digits) for v in values]


def nested(flat: list[str], shape: tuple[int, ...]) -> str:
    """Number texts as a bracketed list of the given shape: ``[[1, -1], [0.5, 0.5]]``."""
    if not shape:
        return flat[0]
    size = len(flat) // shape[0]
    rows = [nested(flat[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])]
    return f"[{', '.join(rows)}]"
