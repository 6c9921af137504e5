"""Which cells move which: against finite differences, and for modules whose structure is known."""

from itertools import product

import pytest
import torch
from torch import nn

from oneblock.attention import MultiHeadAttention
from oneblock.blocks import PostNorm, PreNorm
from oneblock.dependency import dependency, moved, reach
from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.ffn import FFN, SwiGLU
from oneblock.norms import LayerNorm, RMSNorm, layer_norm

N, L, D, H, F = 2, 5, 6, 3, 11
VALID = torch.tensor([[True, True, True, False, False], [True] * L])
EVERY_CELL = list(product(range(N), range(L), range(D)))


class OverTokens(nn.Module):
    """The mistake of a norm over L instead of D."""

    def forward(self, x):
        return layer_norm(x, axes=(1,))


class OverBatch(nn.Module):
    """BatchNorm in training: each feature by itself, over all positions of all sequences."""

    def forward(self, x):
        return nn.functional.batch_norm(x.flatten(0, 1), None, None, training=True).view_as(x)


class AlongL(nn.Module):
    """The mistake of a linear map over [L, D] at once."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(L * D, L * D)

    def forward(self, x):
        return self.map(x.flatten(1)).view_as(x)


ROW = ("features",)
SEQUENCE = ("features", "positions")
CROSSES = {
    "FFN": (lambda: FFN(D, F, "gelu"), ROW),
    "SwiGLU": (lambda: SwiGLU(D, F), ROW),
    "LayerNorm": (lambda: LayerNorm(D), ROW),
    "RMSNorm": (lambda: RMSNorm(D), ROW),
    "attention": (lambda: MultiHeadAttention(D, H), SEQUENCE),
    "PreNorm": (lambda: PreNorm(D, H, F), SEQUENCE),
    "PostNorm": (lambda: PostNorm(D, H, F), SEQUENCE),
    "an activation": (nn.GELU, ()),
    "the identity": (nn.Identity, ()),
    "a norm over tokens": (OverTokens, ("positions",)),
    "a norm over the batch": (OverBatch, ("positions", "sequences")),
    "a map over [L, D]": (AlongL, SEQUENCE),
    "torch's layer": (lambda: nn.TransformerEncoderLayer(D, H, F, 0.0, batch_first=True), SEQUENCE),
    "torch's layer, batch second": (lambda: nn.TransformerEncoderLayer(D, H, F, 0.0), ("features", "sequences")),
}


def module(make, fixed):
    made = make().double()
    for seed, (name, parameter) in enumerate(made.named_parameters(), start=1):
        parameter.data = fixed(*parameter.shape, seed=seed) / 2 + ("norm" in name and name.endswith("weight"))
    return made


def of(name, fixed):
    return module(CROSSES[name][0], fixed)


@pytest.mark.parametrize("name", CROSSES)
def test_a_module_crosses_exactly_the_axes_it_is_built_to_cross(fixed, name):
    assert reach(of(name, fixed), fixed(N, L, D)).crosses == CROSSES[name][1]


@pytest.mark.parametrize("name", ["FFN", "LayerNorm", "attention", "PreNorm", "a norm over the batch"])
def test_a_column_of_the_jacobian_is_what_finite_differences_find(fixed, name):
    f, x, step = of(name, fixed), fixed(N, L, D), 1e-6
    jacobian = dependency(f, x)
    for cell in EVERY_CELL[::7]:
        touch = torch.zeros_like(x)
        touch[cell] = step
        due = (f(x + touch) - f(x - touch)) / (2 * step)
        torch.testing.assert_close(jacobian[(..., *cell)], due, atol=1e-8, rtol=1e-6)
        torch.testing.assert_close(moved(f, x, cell), jacobian[(..., *cell)], atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", CROSSES)
def test_the_whole_jacobian_foretells_a_step_in_any_direction(fixed, name):
    f, x, direction = of(name, fixed), fixed(N, L, D), fixed(N, L, D, seed=1)
    due = (f(x + 1e-6 * direction) - f(x - 1e-6 * direction)) / 2e-6
    foretold = torch.tensordot(dependency(f, x), direction, dims=3)
    torch.testing.assert_close(foretold, due, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("name, rows", [("FFN", "own"), ("LayerNorm", "own"), ("attention", "all"), ("PreNorm", "all")])
def test_a_touch_moves_one_position_or_one_sequence_and_nothing_exactly_elsewhere(fixed, name, rows):
    f, x = of(name, fixed), fixed(N, L, D)
    for n, i, r in EVERY_CELL:
        moves = moved(f, x, (n, i, r)) != 0
        due = torch.zeros(N, L, D, dtype=torch.bool)
        due[n, slice(None) if rows == "all" else i] = True
        assert torch.equal(moves, due)


@pytest.mark.parametrize("name", ["attention", "PreNorm", "PostNorm"])
def test_a_padding_mask_cuts_the_columns_of_padding(fixed, name):
    f, x = of(name, fixed), fixed(N, L, D)
    jacobian = dependency(f, x, VALID)
    for (n, i), (m, j) in product(product(range(N), range(L)), repeat=2):
        due = n == m and (bool(VALID[m, j]) or i == j)  # a padding row asks by its own query, and has its residual
        assert (jacobian[n, i, :, m, j].abs().max() > 0) == due, (n, i, m, j)
    for cell in [(0, 3, 1), (0, 4, 0), (1, 4, 0)]:
        torch.testing.assert_close(moved(f, x, cell, VALID), jacobian[(..., *cell)], atol=1e-12, rtol=0)


def test_positions_and_sequences_are_told_by_place(fixed):
    table = reach(of("PreNorm", fixed), fixed(N, L, D), VALID)
    assert torch.equal(table.sequences, torch.eye(N, dtype=torch.bool)) and table.features.all()
    assert table.positions.all()  # the second sequence has no padding
    first = reach(of("PreNorm", fixed), fixed(1, L, D), VALID[:1])
    assert torch.equal(first.positions, VALID[:1].expand(L, L) | torch.eye(L, dtype=torch.bool))


def test_rows_are_outputs_and_columns_are_inputs(fixed):
    shift = lambda x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)  # noqa: E731
    table = reach(shift, fixed(N, L, D))
    assert torch.equal(table.positions, torch.ones(L, L).tril(-1).triu(-1).bool())  # i reads i − 1
    assert table.crosses == ("positions",)


def test_a_derivative_below_zero_is_a_contact_and_so_is_a_single_one(fixed):
    x, others = fixed(N, L, D), torch.ones(L).diag().bool()
    others[L // 2, L // 2] = False  # the middle is taken from itself
    table = reach(lambda rows: rows - rows.flip(1), x)
    assert torch.equal(table.positions, others | torch.eye(L).flip(1).bool() & ~torch.eye(L).bool())
    assert table.crosses == ("positions",)

    def one_cell_reads_one_other(rows):
        touch = torch.zeros_like(rows)
        touch[1, 2, 3] = 1
        return rows - touch * rows[0, 4, 5]

    table = reach(one_cell_reads_one_other, x)
    for found, place, size in [(table.sequences, (1, 0), N), (table.positions, (2, 4), L), (table.features, (3, 5), D)]:
        due = torch.eye(size).bool()
        due[place] = True
        assert torch.equal(found, due)
    assert torch.equal(moved(one_cell_reads_one_other, x, (0, 4, 5)).nonzero(), torch.tensor([[0, 4, 5], [1, 2, 3]]))


@pytest.mark.parametrize("cut", ["no_grad", "detach"])
def test_what_is_cut_off_from_autograd_comes_out_as_zero_and_forward_mode_sees_through_no_grad(fixed, cut):
    f = torch.no_grad()(lambda rows: 2 * rows) if cut == "no_grad" else lambda rows: 2 * rows.detach()
    assert not dependency(f, fixed(N, L, D)).any()
    assert moved(f, fixed(N, L, D), (0, 0, 0)).any() == (cut == "no_grad")


def test_of_a_random_module_a_single_draw_is_seen(fixed):
    torch.manual_seed(0)
    f, x = nn.Dropout(0.5), fixed(N, L, D)
    kept = [dependency(f, x).count_nonzero() for _ in range(2)]
    assert 0 < kept[0] < x.numel() and kept[0] != kept[1]


def test_a_relu_that_is_off_hides_what_it_reads(fixed):
    x = fixed(N, L, D)
    assert reach(lambda rows: (rows - 100).relu(), x).crosses == () and not moved(lambda r: (r - 100).relu(), x, (0, 0, 0)).any()


def test_a_module_that_writes_into_its_input_leaves_ours_alone(fixed):
    x = fixed(N, L, D)
    dependency(lambda rows: rows.mul_(2), x)
    moved(lambda rows: rows.mul_(2), x, (0, 0, 0))
    assert torch.equal(x, fixed(N, L, D))


def test_nothing_is_left_on_the_parameters(fixed):
    f = of("PreNorm", fixed)
    x = fixed(N, L, D)
    assert not dependency(f, x).requires_grad and not moved(f, x, (0, 0, 0)).requires_grad
    assert all(parameter.grad is None for parameter in f.parameters())


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("look", [dependency, reach, lambda f, x, *mask: moved(f, x, (0, 0, 0), *mask)])
def test_broken_contracts_are_named(fixed, look):
    x = fixed(N, L, D)
    due = r"^f must be a module from \[N, L, D\] to \[N, L, D\], here \[2, 5, 6\]; got "
    for wrong in (lambda x: x[:, :, :3], lambda x: x.sum(), lambda x: (x, x)):
        with pytest.raises(ShapeError, match=due):
            look(wrong, x)
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\]; got float64 \[5, 6\]"):
        look(nn.Identity(), x[0])
    with pytest.raises(DtypeError, match=r"^valid_tokens must be bool \[N, L\] = \[2, 5\]; got float32"):
        look(nn.Identity(), x, VALID.float())


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("cell", [(0, 0), (2, 0, 0), (0, 5, 0), (0, 0, -1), (0, 0, 1.0), (0, 0, True), 3, None])
def test_a_cell_outside_the_input_is_refused(fixed, cell):
    with pytest.raises(ArgumentError, match=r"^cell must be \(n, i, r\) within \[2, 5, 6\], from 0; got"):
        moved(nn.Identity(), fixed(N, L, D), cell)


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_cell_may_be_a_list_and_is_one_cell_all_the_same(fixed):
    f, x = of("PreNorm", fixed), fixed(N, L, D)
    assert torch.equal(moved(f, x, [0, 0, 1]), moved(f, x, (0, 0, 1)))


@pytest.mark.parametrize("look", [dependency, reach, lambda f, x: moved(f, x, (0, 0, 0))])
def test_what_is_not_finite_would_look_like_a_contact_and_is_refused(fixed, look):
    x = fixed(N, L, D)
    for odd in (torch.nan, torch.inf):
        with pytest.raises(ArgumentError, match=r"^x must be finite throughout; got float64 \[2, 5, 6\]; where x is"):
            look(nn.Identity(), x.index_fill(1, torch.tensor([2]), odd))
    with pytest.raises(ArgumentError, match=r"^f must be a module with finite derivatives at x; got float64 \[2, 5, 6"):
        look(lambda rows: (rows - x).sqrt(), x)
