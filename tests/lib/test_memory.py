"""The closed forms against what autograd saves, byte by byte, in each condition."""

from random import Random

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from oneblock import memory
from oneblock.errors import ArgumentError

SIZES = [(6, 11, 3, 5, 2), (14, 3, 2, 7, 3), (5, 23, 1, 13, 1), (22, 13, 11, 2, 3)]
FLOAT = 4


def random_sizes(count):
    random = Random(0)
    for _ in range(count):
        H = random.randint(1, 4)
        yield H * random.randint(1, 5), random.randint(1, 30), H, random.randint(2, 20), random.randint(1, 3)


SIZES += random_sizes(4)
sized = pytest.mark.parametrize("D, F, H, L, N", SIZES)


@pytest.fixture
def rows(fixed):
    """``rows(N, L, D)``: an input that some layer below computed, so that gradients go through it."""

    def leaf(*shape):
        return fixed(*shape, dtype=torch.float32).requires_grad_()

    return leaf


def elements(module, *inputs, **options):
    size = memory.nbytes(memory.kept(module, *inputs, **options))
    assert size % FLOAT == 0
    return size // FLOAT


# Attention.


@sized
def test_the_fused_kernel_keeps_no_square(rows, D, F, H, L, N):
    attention, x = nn.MultiheadAttention(D, H, batch_first=True), rows(N, L, D)
    assert elements(attention, x, x, x, need_weights=False) == memory.attention_kept(D, H, L, N)


@sized
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_asked_for_its_weights_attention_keeps_squares(rows, D, F, H, L, N, dropout):
    attention, x = nn.MultiheadAttention(D, H, dropout=dropout, batch_first=True), rows(N, L, D)
    due = memory.attention_kept(D, H, L, N, "weights", dropout > 0)
    assert elements(attention, x, x, x, need_weights=True) == due


@sized
def test_dropout_keeps_three_squares_even_without_weights(rows, D, F, H, L, N):
    attention, x = nn.MultiheadAttention(D, H, dropout=0.25, batch_first=True), rows(N, L, D)
    due = memory.attention_kept(D, H, L, N, "math", dropout=True)
    assert elements(attention, x, x, x, need_weights=False) == due
    kept = memory.kept(attention, x, x, x, need_weights=False)
    assert sum(tensor.numel() == N * H * L * L for tensor in kept) >= 3


@sized
def test_the_kernel_in_matrix_products_keeps_one_square(rows, D, F, H, L, N):
    attention, x = nn.MultiheadAttention(D, H, batch_first=True), rows(N, L, D)
    with sdpa_kernel(SDPBackend.MATH):
        assert elements(attention, x, x, x, need_weights=False) == memory.attention_kept(D, H, L, N, "math")


def test_in_eval_dropout_leaves_the_fused_kernel_on(rows):
    attention, x = nn.MultiheadAttention(6, 3, dropout=0.25, batch_first=True).eval(), rows(2, 5, 6)
    assert elements(attention, x, x, x, need_weights=False) == memory.attention_kept(6, 3, 5, 2)


def test_a_causal_hint_keeps_no_square_and_a_padding_mask_one_row_for_each_head(rows):
    N, L, D, H = 2, 5, 6, 3
    attention, x = nn.MultiheadAttention(D, H, batch_first=True), rows(N, L, D)
    hint = {"attn_mask": nn.Transformer.generate_square_subsequent_mask(L), "is_causal": True}
    padding = {"key_padding_mask": torch.tensor([[False] * L, [False] * 3 + [True] * 2])}
    fused = memory.attention_kept(D, H, L, N)
    assert elements(attention, x, x, x, need_weights=False, **hint) == fused
    assert elements(attention, x, x, x, need_weights=False, **padding) == fused + N * H * L


def test_dropout_calls_another_kernel_on_cpu(rows):
    def kernel(dropout):
        heads = rows(1, 2, 5, 3)
        with torch.profiler.profile() as profile:
            functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=dropout)
        return {event.key for event in profile.key_averages()}

    fused = "aten::_scaled_dot_product_flash_attention_for_cpu"
    assert fused in kernel(0.0) and fused not in kernel(0.25)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kernel": "flash"}, "kernel must be one of fused, math, weights; got 'flash'"),
        ({"dropout": True}, "kernel must be 'math' or 'weights', with dropout on CPU; got 'fused'"),
    ],
)
def test_a_way_that_there_is_not_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        memory.attention_kept(6, 3, 5, **options)


# The per-position networks and the norm.


@sized
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_what_an_ffn_keeps(rows, D, F, H, L, N, activation, dropout):
    phi = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}[activation]()
    ffn = nn.Sequential(nn.Linear(D, F), phi, nn.Dropout(dropout), nn.Linear(F, D))
    due = memory.ffn_kept(D, F, L, N, activation, dropout > 0)
    assert elements(ffn, rows(N, L, D)) == due


@sized
def test_what_a_gated_ffn_keeps(rows, D, F, H, L, N):
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up, self.down = nn.Linear(D, F), nn.Linear(D, F), nn.Linear(F, D)

        def forward(self, x):
            return self.down(functional.silu(self.gate(x)) * self.up(x))

    assert elements(Gated(), rows(N, L, D)) == memory.gated_ffn_kept(D, F, L, N)


@sized
def test_what_a_norm_keeps(rows, D, F, H, L, N):
    assert elements(nn.LayerNorm(D), rows(N, L, D)) == memory.norm_kept(D, L, N)


@pytest.mark.parametrize("active", [1, 2, 5])
def test_what_a_mixture_keeps(rows, mixture, active):
    N, L, D, F, experts = 2, 7, 3, 11, 5
    network = [nn.Sequential(nn.Linear(D, F), nn.ReLU(), nn.Linear(F, D)) for _ in range(experts)]
    kept = memory.kept(mixture(D, network, active), rows(N, L, D))
    numbers = [tensor for tensor in kept if tensor.is_floating_point()]
    assert memory.nbytes(numbers) == FLOAT * memory.moe_kept(D, F, L, experts, active, N)


# The whole layer.


@sized
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_what_a_layer_keeps(rows, D, F, H, L, N, norm_first, activation, dropout):
    layer = nn.TransformerEncoderLayer(D, H, F, dropout, activation, norm_first=norm_first, batch_first=True)
    kernel = "math" if dropout else "fused"
    due = memory.layer_kept(D, F, H, L, N, kernel, activation, dropout > 0)
    assert elements(layer, rows(N, L, D)) == due


@pytest.mark.parametrize("D, F, H, L, N", SIZES)
def test_the_sums_written_out(D, F, H, L, N):
    assert memory.layer_kept(D, F, H, L, N) == N * (8 * L * D + L * F + H * L + 4 * L)
    with_dropout = memory.layer_kept(D, F, H, L, N, "math", dropout=True)
    assert with_dropout == N * (12 * L * D + 3 * L * F + 3 * H * L * L + 4 * L)


# The measurement itself.


def test_each_storage_counts_once_and_a_view_counts_its_storage(fixed):
    class Views(nn.Module):
        def forward(self, x):
            return x.exp().chunk(2, dim=-1)[0].square() + x.square().sum()

    kept = memory.kept(Views(), fixed(3, 4).requires_grad_())
    assert sorted(tensor.numel() for tensor in kept) == [12, 12]
    assert memory.nbytes(kept) == 2 * 12 * 8


def test_parameters_are_kept_anyway_and_do_not_count(fixed):
    linear, x = nn.Linear(3, 5).double(), fixed(7, 3).requires_grad_()
    (only,) = memory.kept(linear, x)
    assert only.data_ptr() == x.data_ptr() and memory.nbytes([only]) == 7 * 3 * 8


def test_under_no_grad_nothing_is_kept(fixed):
    with torch.no_grad():
        assert memory.kept(nn.Linear(3, 5).double(), fixed(7, 3)) == []


# The most that is held at once.


def test_the_peak_is_what_is_held_at_once():
    def two_at_once():
        first = torch.empty(1000, dtype=torch.float32)
        del first
        second, third = torch.empty(2000, dtype=torch.float32), torch.empty(500, dtype=torch.float32)
        return second, third

    held_before = torch.empty(10_000)
    assert memory.peak(two_at_once) == 4 * 2500 and len(held_before)
    assert memory.peak(lambda: None) == 0


def test_the_peak_sees_what_a_kernel_takes_for_itself():
    """A product of a matrix and its square copy: the copy that contiguous() makes inside is no tensor of ours."""
    x = torch.zeros(64, 64, dtype=torch.float32)
    assert memory.peak(lambda: torch.linalg.inv(x + torch.eye(64))) > 2 * x.nbytes


def test_the_peak_is_measured_without_a_word(capfd):
    memory.peak(lambda: torch.empty(10))
    assert capfd.readouterr().err == ""


def test_a_parameter_that_is_a_part_of_a_larger_storage_does_not_count(fixed):
    linear, x = nn.Linear(3, 5, bias=False).double(), fixed(7, 3).requires_grad_()
    linear.weight.data = fixed(6, 3)[1:]
    assert [tensor.data_ptr() for tensor in memory.kept(linear, x)] == [x.data_ptr()]
