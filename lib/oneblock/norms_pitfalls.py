"""Wrong on purpose: LayerNorms that books and repositories have shipped, to be set beside the right one.

Each gives the right shape and plausible numbers. None is used by the library; all take ``x: [..., D]``,
leave γ and β out, and differ from :func:`oneblock.norms.layer_norm` in one thing, the last in two.
"""

from jaxtyping import Float
from torch import Tensor


def unbiased_deviation(x: Float[Tensor, "*N D"], eps: float = 1e-5) -> Float[Tensor, "*N D"]:
    """WRONG: divides the squares by ``D − 1``, as ``Tensor.std`` and ``Tensor.var`` do unless told otherwise.

    Every output is multiplied by ``√((D − 1)/D)`` where ε is small beside the variance; at ``D = 1`` it is NaN.
    """
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt()


def eps_outside_root(x: Float[Tensor, "*N D"], eps: float = 1e-5) -> Float[Tensor, "*N D"]:
    """WRONG: ``σ + ε`` where ``√(σ² + ε)`` is due: ε is taken in the unit of x, not of x².

    Seen only where σ is small: at σ = 0 it divides by ε, not by √ε.
    """
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True).sqrt() + eps)


def across_tokens(x: Float[Tensor, "*N L D"], eps: float = 1e-5) -> Float[Tensor, "*N L D"]:
    """WRONG: takes μ and σ over the tokens, not the features, so that every row depends on all others.

    Padding then changes the numbers of real tokens.
    """
    return (x - x.mean(-2, keepdim=True)) / (x.var(-2, correction=0, keepdim=True) + eps).sqrt()


def copied_layer_norm(x: Float[Tensor, "*N D"], eps: float = 1e-6) -> Float[Tensor, "*N D"]:
    """WRONG twice: unbiased deviation and ε outside the root, in the form in which it is copied.

    Source: ``LayerNorm`` of *The Annotated Transformer*, 2018, nlp.seas.harvard.edu/annotated-transformer.
    """
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)
