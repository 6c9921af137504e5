"""Which tokens are real, and the places where a padded batch must say so: the mean and the loss.

A mask acts at three boundaries. Each lets through what the two others stop:

- the attention mask keeps real tokens from reading padding (:func:`oneblock.attention.attention`);
- the pooling mask keeps padding out of the mean of a text (:func:`masked_mean`);
- the loss mask keeps padding out of the mean over tokens that is learned from (:func:`token_loss`).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from oneblock.errors import ArgumentError, DtypeError, ShapeError, check_device, check_tensor
from oneblock.modes import values_can_be_read
from oneblock.precision import widened
from oneblock.trace import tap

IGNORED = -100
"""The class that ``torch.nn.functional.cross_entropy`` passes over unless told otherwise."""


def check_valid_tokens(
    valid_tokens: Bool[Tensor, "N L"], x: Float[Tensor, "N L D"], argument: str = "valid_tokens"
) -> None:
    """Refuses a mask that does not say of each token of ``x`` whether it is real, ``True``, or padding.

    Two texts of 2 and 3 tokens, padded to 4::

        [[True, True, False, False],
         [True, True, True,  False]]

    Args:
        valid_tokens: ``[N, L]``, bool.
        x: ``[N, L, D]``, the rows it speaks of.
        argument: what an error calls the mask.
    Raises:
        DtypeError, ShapeError: ``valid_tokens`` is not bool, or not ``[N, L]``.
        ArgumentError: a text has no real token, so that there is nothing to attend to.
    """
    check_tensor("x", x, "N L D")
    due = _check_mask(valid_tokens, x, argument)
    if not values_can_be_read(valid_tokens):
        return
    empty = (~valid_tokens.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        due += " with a True in every row"
        raise ArgumentError(argument, due, valid_tokens, f"rows {empty} are all padding; drop those texts")


def masked_mean(rows: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N D"]:
    """``pooled = Σ_j w_j rows_j / max(Σ_j w_j, 1)`` with ``w_j`` 1 for a real token and 0 for padding.

    Padding is replaced by 0 and not multiplied by it: 0 · NaN is NaN. A NaN in a real row stays. Half precision
    is summed and counted in float32 and rounded once: float16 counts to 2048, bfloat16 to 256.

    Args:
        rows: ``[N, L, D]``.
        valid_tokens: ``[N, L]``, True for a real token. A text without one has the mean 0.
    Returns:
        ``[N, D]`` in the dtype of ``rows``.
    Raises:
        ArgumentError: ``rows`` is not floating ``[N, L, D]``, ``valid_tokens`` is not bool ``[N, L]``.
    Source: Reimers, Gurevych, *Sentence-BERT*, 2019, section 3, arXiv:1908.10084, which pools by this mean.
    """
    check_tensor("rows", rows, "N L D")
    _check_mask(valid_tokens, rows)
    real, wide = valid_tokens[..., None], widened(rows)
    w = tap("token_weights", real.to(wide.dtype), "1 where {valid_tokens}, else 0", valid_tokens=valid_tokens)
    kept = tap("kept", wide.masked_fill(~real, 0), "{rows} where {w} = 1, else 0", rows=rows, w=w)
    total = tap("total", kept.sum(1), "Σ {kept}", "Σj⟨{kept[j,d]}⟩", kept=kept)
    count = tap("count", w.sum(1).clamp(min=1), "max(Σ {w}, 1)", "max(Σj⟨{w[j]}⟩, 1)", w=w)
    pooled = (total / count).to(rows.dtype)
    return tap("pooled", pooled, "{total} / {count}", "{total[d]} / {count}", total=total, count=count)


def token_loss(
    logits: Float[Tensor, "N L C"], classes: Int[Tensor, "N L"], valid_tokens: Bool[Tensor, "N L"]
) -> Float[Tensor, ""]:
    """``−(1/n) Σ log softmax(logits)[class]`` over the ``n`` real tokens of the batch, in nats.

    Padding is given the class −100, which ``cross_entropy`` passes over, and takes no part in ``n``. Its logits
    are replaced by 0: a NaN there would leave the loss alone and still spoil its gradient.

    Args:
        logits: ``[N, L, C]``.
        classes: ``[N, L]``, whole numbers from 0 to C − 1; at padding any number.
        valid_tokens: ``[N, L]``, True for a real token.
    Returns:
        one number in the dtype of ``logits``.
    Raises:
        ArgumentError: ``logits`` is not floating ``[N, L, C]``, ``classes`` is not int64 ``[N, L]``, a real token has no
            class of the C, ``valid_tokens`` is not bool ``[N, L]``, or no token is real.
    Source: ``torch.nn.functional.cross_entropy`` with ``ignore_index``.
    """
    check_tensor("logits", logits, "N L C")
    due = _check_mask(valid_tokens, logits)
    if values_can_be_read(valid_tokens) and not valid_tokens.any():
        raise ArgumentError("valid_tokens", f"{due} with a True", valid_tokens, "a mean over no token is 0/0")
    _check_classes(classes, logits, valid_tokens)
    wide = widened(logits).masked_fill(~valid_tokens[..., None], 0)
    targets = classes.masked_fill(~valid_tokens, IGNORED)
    return cross_entropy(wide.flatten(0, 1), targets.flatten(), ignore_index=IGNORED).to(logits.dtype)


def _check_mask(valid_tokens: Tensor, x: Tensor, argument: str = "valid_tokens") -> str:
    """Refuses a mask that is not bool, or not as large as the first two axes of ``x``; returns what was due."""
    due = f"bool [N, L] = {list(x.shape[:2])}"
    hint = "compare your ids with the padding id"
    if not isinstance(valid_tokens, Tensor) or valid_tokens.dtype != torch.bool:
        raise DtypeError(argument, due, valid_tokens, hint)
    if valid_tokens.shape != x.shape[:2]:
        swapped = valid_tokens.shape == x.shape[1::-1]
        raise ShapeError(argument, due, valid_tokens, "its two axes are swapped" if swapped else hint)
    check_device(argument, valid_tokens, x, "the rows")
    return due


def _check_classes(classes: Tensor, logits: Tensor, valid_tokens: Tensor) -> None:
    N, L, C = logits.shape
    due = f"int64 [N, L] = {[N, L]}"
    if not isinstance(classes, Tensor) or classes.dtype != torch.int64:
        raise DtypeError("classes", due, classes, "a class is the number of its logit")
    if classes.shape != (N, L):
        raise ShapeError("classes", due, classes, "one class for each token")
    check_device("classes", classes, logits, "logits")
    if not values_can_be_read(classes):
        return
    wrong = classes[valid_tokens & ~((classes >= 0) & (classes < C))].unique().tolist()
    if wrong:
        raise ArgumentError("classes", f"from 0 to {C - 1} at real tokens", wrong, "mark padding in valid_tokens")
