import pytest
import torch

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.jacobians import (
    ffn_jacobian,
    jacobian,
    layer_norm_jacobian,
    post_ln_factors,
    post_ln_jacobian,
    pre_ln_factors,
    pre_ln_jacobian,
    rms_norm_jacobian,
    softmax_jacobian,
)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("closed", [layer_norm_jacobian, rms_norm_jacobian])
def test_a_norms_contract(fixed, closed):
    with pytest.raises(ShapeError, match=r"^x must be floating \[D\]; got float64 \[3, 5\]; .* torch\.vmap"):
        closed(fixed(3, 5))
    with pytest.raises(ShapeError, match=r"^gamma must be floating \[D\] = \[5\]; got float64 \[3\]"):
        closed(fixed(5), fixed(3))
    with pytest.raises(DtypeError, match=r"^x must be floating \[D\]; got \[1, 2\]"):
        closed([1, 2])
    with pytest.raises(ArgumentError, match=r"^eps must be a finite number ≥ 0; got -1"):
        closed(fixed(5), eps=-1)


@pytest.mark.usefixtures("as_readers_run_it")
def test_the_contracts_of_the_others(fixed):
    with pytest.raises(DtypeError, match=r"^x must be floating \[\.\.\.\]; got int64 \[3\]"):
        jacobian(torch.square, torch.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match=r"^weights must be floating \[L\]; got float64 \[3, 5\]"):
        softmax_jacobian(fixed(3, 5))
    with pytest.raises(ShapeError, match=r"^W1 must be floating \[F, D\] = \[F, 5\]; got float64 \[5, 3\]"):
        ffn_jacobian(fixed(5), fixed(5, 3), fixed(3), fixed(5, 3))
    with pytest.raises(ShapeError, match=r"^b1 must be floating \[F\] = \[3\]; got float64 \[5\]"):
        ffn_jacobian(fixed(5), fixed(3, 5), fixed(5), fixed(5, 3))
    with pytest.raises(ShapeError, match=r"^W2 must be floating \[D, F\] = \[5, 3\]; got float64 \[3, 5\]"):
        ffn_jacobian(fixed(5), fixed(3, 5), fixed(3), fixed(3, 5))
    with pytest.raises(ArgumentError, match=r"^activation must be one of relu, gelu, .*; got 'sigmoid'"):
        ffn_jacobian(fixed(5), fixed(3, 5), fixed(3), fixed(5, 3), "sigmoid")
    with pytest.raises(ShapeError, match=r"^x must be floating \[D\]; got float64 \[2, 5\]"):
        post_ln_factors(torch.tanh, fixed(2, 5))


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("combine, names", [(pre_ln_jacobian, ("J_S", "J_LN")), (post_ln_jacobian, ("J_LN", "J_S"))])
def test_two_factors_must_fit(fixed, combine, names):
    first, second = names
    with pytest.raises(ShapeError, match=rf"^{first} must be floating \[D, D\] = \[5, 5\]; got float64 \[3, 5\]"):
        combine(fixed(3, 5), fixed(5, 5))
    with pytest.raises(ShapeError, match=rf"^{second} must be floating \[D, D\] = \[3, 3\]; got float64 \[5, 5\]"):
        combine(fixed(3, 3), fixed(5, 5))
    with pytest.raises(ShapeError, match=rf"^{second} must be floating \[D, D\]; got float64 \[3\]"):
        combine(fixed(3, 3), fixed(3))


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("factors", [pre_ln_factors, post_ln_factors])
@pytest.mark.parametrize("S", [lambda x: x[:1], lambda x: x.sum(), lambda x: x[None], lambda x: (x, x)])
def test_a_sublayer_gives_a_row_of_the_width_it_got(fixed, factors, S):
    with pytest.raises(ShapeError, match=r"^S must be a sublayer from \[D\] to \[D\], here \[5\]; got "):
        factors(S, fixed(5))
