"""What a block costs: parameters, floating-point operations and elements, in closed form.

A floating-point operation (FLOP) is one multiplication or one addition, so that a multiply-add counts 2.
Only matrix products are counted: no biases, softmax, norms, activations, dropout or residual sums. This
is the convention of ``torch.utils.flop_counter``. All FLOPs and elements are those of one sequence of
``L`` positions on its way forward; ``N`` sequences cost N times as much.

The heads share the width: ``H`` heads of ``E = D/H`` each. ``H`` then changes neither parameters nor FLOPs.

Every function refuses, by an ArgumentError, a size that is no whole number ≥ 1 and a flag that is no bool.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from inspect import signature

from oneblock.errors import check_flag, check_size


def _of_sizes(formula: Callable) -> Callable:
    """Holds a formula to sizes that are whole numbers ≥ 1, and to flags that are True or False."""
    parameters = signature(formula).parameters

    @wraps(formula)
    def checked(*args: object, **kwargs: object) -> int | Fraction:
        for name, value in signature(formula).bind(*args, **kwargs).arguments.items():
            (check_flag if parameters[name].annotation is bool else check_size)(name, value)
        return formula(*args, **kwargs)

    return checked


# Parameters.


@_of_sizes
def attention_parameters(D: int, bias: bool = True) -> int:
    """Four maps from D to D, for queries, keys, values and the output: ``4D²``, and ``4D`` more with biases."""
    return 4 * D * D + bias * 4 * D


@_of_sizes
def ffn_parameters(D: int, F: int, bias: bool = True) -> int:
    """``2DF``, and ``F + D`` more with biases."""
    return 2 * D * F + bias * (F + D)


@_of_sizes
def gated_ffn_parameters(D: int, F: int, bias: bool = False) -> int:
    """``3DF``, and ``2F + D`` more with biases."""
    return 3 * D * F + bias * (2 * F + D)


@_of_sizes
def moe_parameters(D: int, experts: int, per_expert: int) -> int:
    """A mixture's experts and its router, a map from D to a score for each expert: ``experts · (per_expert + D)``.

    For one token only the experts that the router chose are used. Those ``active`` ones, and the router, have
    ``active · per_expert + experts · D``.
    """
    return experts * (per_expert + D)


@_of_sizes
def active_moe_parameters(D: int, experts: int, per_expert: int, active: int) -> int:
    """The parameters that one token meets: the router and ``active`` experts."""
    return active * per_expert + experts * D


@_of_sizes
def norm_parameters(D: int, bias: bool = True) -> int:
    """γ and β of a LayerNorm, ``2D``; without β, as in an RMSNorm, ``D``."""
    return D + bias * D


@_of_sizes
def block_parameters(D: int, F: int, bias: bool = True) -> int:
    """Attention, a plain FFN and two LayerNorms; the order of norm and sum does not matter."""
    return attention_parameters(D, bias) + ffn_parameters(D, F, bias) + 2 * norm_parameters(D, bias)


# Operations.


@_of_sizes
def pairs(L: int, causal: bool = False) -> int:
    """How many pairs (i, j) of positions meet: ``L²``, or ``L(L + 1)/2`` where i sees no j behind itself.

    Dense code computes all ``L²`` and masks the others away; the causal count is what a kernel that skips
    them is left with.
    """
    return L * (L + 1) // 2 if causal else L * L


@_of_sizes
def projection_flops(D: int, L: int) -> int:
    """Queries, keys, values and the output projection: ``8LD²``."""
    return 8 * L * D * D


@_of_sizes
def score_flops(D: int, L: int, causal: bool = False) -> int:
    """``Q Kᵀ`` of all heads: ``2D`` for each pair, ``2L²D``. The weighted sum of the values costs the same again."""
    return 2 * D * pairs(L, causal)


@_of_sizes
def attention_flops(D: int, L: int, causal: bool = False) -> int:
    """Projections, scores and weighted sum: ``8LD² + 4L²D``."""
    return projection_flops(D, L) + 2 * score_flops(D, L, causal)


@_of_sizes
def ffn_flops(D: int, F: int, L: int) -> int:
    """``4LDF``: each of the ``2DF`` weights is multiplied and added once for each position."""
    return 4 * L * D * F


@_of_sizes
def gated_ffn_flops(D: int, F: int, L: int) -> int:
    """``6LDF``; the product of the two branches is no matrix product and not counted."""
    return 6 * L * D * F


@_of_sizes
def moe_flops(D: int, L: int, experts: int, expert_flops: int, active: int) -> int:
    """The router, ``2LD · experts``, and ``active`` experts at each position.

    ``expert_flops`` is what one expert would cost at all L positions, such as ``ffn_flops(D, F, L)``.
    """
    return 2 * L * D * experts + active * expert_flops


# Elements.


@_of_sizes
def score_elements(H: int, L: int, causal: bool = False) -> int:
    """One attention score for each head and pair: ``HL²``."""
    return H * pairs(L, causal)


@_of_sizes
def hidden_elements(F: int, L: int, gated: bool = False) -> int:
    """What the widening maps give: ``LF`` numbers, twice as many with a gate beside the content."""
    return L * F * (2 if gated else 1)


# Crossovers.


@_of_sizes
def scores_overtake_ffn(F: int, gated: bool = False, causal: bool = False) -> Fraction:
    """``score_flops > ffn_flops`` where ``L`` exceeds this: ``2F``; gated ``3F``. D and H do not matter.

    Causal: ``4F − 1``; gated ``6F − 1``.
    """
    return _overtake(6 * F if gated else 4 * F, 2, causal)


@_of_sizes
def mixing_overtakes_ffn(F: int, gated: bool = False, causal: bool = False) -> Fraction:
    """Scores and weighted sum together exceed the FFN's FLOPs where ``L`` exceeds this: ``F``; gated ``3F/2``.

    Causal: ``2F − 1``; gated ``3F − 1``.
    """
    return _overtake(6 * F if gated else 4 * F, 4, causal)


@_of_sizes
def attention_overtakes_ffn(D: int, F: int, gated: bool = False, causal: bool = False) -> Fraction:
    """``attention_flops > ffn_flops`` where ``L`` exceeds this: ``F − 2D``; gated ``3F/2 − 2D``.

    Causal: ``2F − 4D − 1``; gated ``3F − 4D − 1``. Below 1 attention costs more at every length.
    """
    return _overtake((6 * F if gated else 4 * F) - 8 * D, 4, causal)


@_of_sizes
def elements_overtake_hidden(F: int, H: int, gated: bool = False, causal: bool = False) -> Fraction:
    """``score_elements > hidden_elements`` where ``L`` exceeds this: ``F/H``; gated ``2F/H``.

    Causal: ``2F/H − 1``; gated ``4F/H − 1``.
    """
    return _overtake(2 * F if gated else F, H, causal)


def _overtake(per_position: int, per_pair: int, causal: bool) -> Fraction:
    """Where ``per_pair · pairs(L) = per_position · L``."""
    ratio = Fraction(per_position, per_pair)
    return 2 * ratio - 1 if causal else ratio
