"""The checks accuse no correct block of other people's packages, and catch such a block that has been broken.

``FOREIGN`` is also a collection of examples: how each block is called, and what is said of it. Nothing is downloaded;
the blocks are small and have random first values.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.checks import CHECKS, Adapter, diagnose
from oneblock.checks.finding import FAILED, NOT_APPLICABLE, PASSED

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

# torchvision's wheel for Linux is built for CUDA. Beside a CPU build of torch its operators stay away, and its import
# stops at two of them, which no block uses: they are declared, and it is imported again, by whoever needs it.
with contextlib.suppress(RuntimeError):
    import torchvision
for _operator in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, _operator):
        torch.library.define(f"torchvision::{_operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import x_transformers
from open_clip import transformer as open_clip
from timm.layers import RmsNorm, SwiGLUPacked
from timm.models import eva, vision_transformer
from torchvision.models.vision_transformer import EncoderBlock
from transformers import BertConfig, CLIPTextConfig, DistilBertConfig, GPT2Config, GPTNeoXConfig, LlamaConfig
from transformers import ModernBertConfig, Olmo2Config, Qwen3Config, T5Config, ViTConfig, WhisperConfig
from transformers.models.bert import modeling_bert as bert
from transformers.models.clip import modeling_clip as clip
from transformers.models.distilbert import modeling_distilbert as distilbert
from transformers.models.gpt2 import modeling_gpt2 as gpt2
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox
from transformers.models.llama import modeling_llama as llama
from transformers.models.modernbert import modeling_modernbert as modernbert
from transformers.models.olmo2 import modeling_olmo2 as olmo2
from transformers.models.qwen3 import modeling_qwen3 as qwen3
from transformers.models.t5 import modeling_t5 as t5
from transformers.models.vit import modeling_vit as vit
from transformers.models.whisper import modeling_whisper as whisper
from vit_pytorch.vit import Transformer

D, H, F = 24, 4, 40
SEEDS = 20

# What the blocks of transformers are built of, and told.
SIZES = {"hidden_size": D, "num_attention_heads": H, "intermediate_size": F, "attn_implementation": "sdpa"}
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": D // H}
LLAMA, QWEN, OLMO, NEOX = LlamaConfig(**GROUPED), Qwen3Config(**GROUPED), Olmo2Config(**GROUPED), GPTNeoXConfig(**SIZES)
MODERN = ModernBertConfig(**SIZES, num_hidden_layers=2)
T5 = T5Config(d_model=D, d_kv=D // H, d_ff=F, num_heads=H, feed_forward_proj="gated-gelu")
GPT2 = GPT2Config(n_embd=D, n_head=H, n_inner=F, attn_implementation="sdpa")
DISTIL = DistilBertConfig(dim=D, n_heads=H, hidden_dim=F, attn_implementation="eager")
WHISPER = WhisperConfig(d_model=D, encoder_attention_heads=H, encoder_ffn_dim=F, attn_implementation="sdpa")
X = {"dim": D, "depth": 1, "heads": H, "attn_dim_head": D // H, "pre_norm_has_final_norm": False}  # one block is no stack

# How masks are handed over: the four conventions of these packages.
NO_MASK, PLAIN = Adapter(), Adapter("real", "mask")
MAY_READ, ADDED = Adapter("real", "attn_mask", "N 1 L L"), Adapter("additive", "attention_mask", "N 1 L L")


def scores_mask(x, valid_tokens, is_causal):
    """``[N, 1, L, L]``: 0 where a position may read, −∞ where it may not."""
    L = x.shape[1]
    may_read = torch.ones(len(x), 1, L, L, dtype=torch.bool)
    may_read = may_read.tril() if is_causal else may_read
    may_read = may_read if valid_tokens is None else may_read & valid_tokens[:, None, None]
    return torch.zeros(may_read.shape, dtype=x.dtype).masked_fill(~may_read, -torch.inf)


def causal(block, x, valid_tokens):
    return block(x, attention_mask=scores_mask(x, valid_tokens, is_causal=True))


def positional(block, x, valid_tokens):
    """CLIP and Whisper want a mask, if only ``None``."""
    return block(x, None if valid_tokens is None else scores_mask(x, valid_tokens, is_causal=False))


def by_head(block, x, valid_tokens):
    """open_clip hands its mask to ``nn.MultiheadAttention``: one for each head of each text."""
    mask = scores_mask(x, valid_tokens, is_causal=False).expand(-1, H, -1, -1)
    return block(x, attn_mask=mask.flatten(0, 1))


def rotary(embedding, *layer_type, is_causal=True):
    """The model computes the angles once and hands them to each block."""

    def call(block, x, valid_tokens):
        angles = embedding(x, torch.arange(x.shape[1])[None], *layer_type)
        return block(x, attention_mask=scores_mask(x, valid_tokens, is_causal), position_embeddings=angles)

    return call


def without_final_norm(stack):
    """vit-pytorch norms once more behind its last block, which is no part of any block."""
    stack.norm = nn.Identity()
    return stack


@dataclass(frozen=True)
class Foreign:
    """How a block is made and called, what is claimed of it, and which checks cannot see what they look at."""

    make: Callable[[], nn.Module]
    call: Callable
    claims: dict[str, bool] = field(default_factory=dict)
    skipped: str = ""

    def diagnose(self, seed, **further):
        torch.manual_seed(seed)
        return diagnose(self.make(), D, self.call, **self.claims, **further)


MASKED, CAUSAL = {"takes_mask": True}, {"takes_mask": True, "causal": True}
ROTARY, BOTH = MASKED | {"positions": True}, CAUSAL | {"positions": True}
MASK, ORDER, SIZE, PARITY = "padding_leak ", "permutation_equivariance ", "residual_ratio ", "official_parity "

FOREIGN = {
    "torchvision EncoderBlock": Foreign(lambda: EncoderBlock(H, D, F, 0.1, 0.1), NO_MASK, skipped=MASK),
    "timm Block": Foreign(lambda: vision_transformer.Block(D, H, qkv_bias=True, proj_drop=0.1), MAY_READ),
    "timm Block, layer scale, normed heads, whole branches dropped": Foreign(
        lambda: vision_transformer.Block(D, H, qk_norm=True, init_values=1e-5, drop_path=0.1), MAY_READ, skipped=PARITY
    ),
    "timm Block, RMSNorm and SwiGLU": Foreign(
        lambda: vision_transformer.Block(D, H, norm_layer=RmsNorm, mlp_layer=SwiGLUPacked), MAY_READ, skipped=PARITY
    ),
    "timm ParallelScalingBlock, both branches side by side": Foreign(
        lambda: vision_transformer.ParallelScalingBlock(D, H, qkv_bias=True), MAY_READ, skipped=PARITY
    ),
    "timm EvaBlockPostNorm": Foreign(lambda: eva.EvaBlockPostNorm(D, H, swiglu_mlp=True), MAY_READ, skipped=SIZE + PARITY),
    "timm ResPostBlock, a norm after each branch": Foreign(
        lambda: vision_transformer.ResPostBlock(D, H, qkv_bias=True), MAY_READ, skipped=SIZE + PARITY
    ),
    "timm EvaBlock, SwiGLU with a norm inside": Foreign(
        lambda: eva.EvaBlock(D, H, swiglu_mlp=True, scale_mlp=True), MAY_READ, skipped=PARITY
    ),
    "timm ParallelThingsBlock, two attentions and two FFNs": Foreign(
        lambda: vision_transformer.ParallelThingsBlock(D, H, qkv_bias=True), MAY_READ, skipped=PARITY
    ),
    "BertLayer": Foreign(lambda: bert.BertLayer(BertConfig(**SIZES | {"attn_implementation": "eager"})), ADDED, skipped=SIZE),
    "DistilBERT's TransformerBlock": Foreign(lambda: distilbert.TransformerBlock(DISTIL), ADDED, skipped=SIZE),
    "ViTLayer": Foreign(lambda: vit.ViTLayer(ViTConfig(**SIZES)), NO_MASK, skipped=MASK),
    "CLIPEncoderLayer": Foreign(lambda: clip.CLIPEncoderLayer(CLIPTextConfig(**SIZES)), positional, MASKED),
    "WhisperEncoderLayer": Foreign(lambda: whisper.WhisperEncoderLayer(WHISPER), positional, skipped=MASK),
    "GPT2Block": Foreign(lambda: gpt2.GPT2Block(GPT2), causal, CAUSAL, ORDER),
    "GPTNeoXLayer, both branches side by side": Foreign(
        lambda: gpt_neox.GPTNeoXLayer(NEOX, 0), rotary(gpt_neox.GPTNeoXRotaryEmbedding(NEOX)), BOTH, ORDER + PARITY
    ),
    "LlamaDecoderLayer": Foreign(
        lambda: llama.LlamaDecoderLayer(LLAMA, 0), rotary(llama.LlamaRotaryEmbedding(LLAMA)), BOTH, ORDER + PARITY
    ),
    "Qwen3DecoderLayer": Foreign(
        lambda: qwen3.Qwen3DecoderLayer(QWEN, 0), rotary(qwen3.Qwen3RotaryEmbedding(QWEN)), BOTH, ORDER + PARITY
    ),
    "Olmo2DecoderLayer, a norm after each branch": Foreign(
        lambda: olmo2.Olmo2DecoderLayer(OLMO, 0), rotary(olmo2.Olmo2RotaryEmbedding(OLMO)), BOTH, ORDER + SIZE + PARITY
    ),
    "ModernBertEncoderLayer": Foreign(
        lambda: modernbert.ModernBertEncoderLayer(MODERN, 1),
        rotary(modernbert.ModernBertRotaryEmbedding(MODERN), "full_attention", is_causal=False),
        ROTARY,
        ORDER + PARITY,
    ),
    "T5Block, relative positions": Foreign(
        lambda: t5.T5Block(T5, has_relative_attention_bias=True), ADDED, {"positions": True}, ORDER + PARITY
    ),
    "x-transformers Encoder": Foreign(lambda: x_transformers.Encoder(**X), PLAIN),
    "x-transformers Encoder, Post-LN": Foreign(lambda: x_transformers.Encoder(**X, pre_norm=False), PLAIN, skipped=SIZE),
    "x-transformers Encoder, RMSNorm and SwiGLU": Foreign(
        lambda: x_transformers.Encoder(**X, use_rmsnorm=True, ff_glu=True, ff_swish=True), PLAIN, skipped=PARITY
    ),
    "x-transformers Encoder, norms before and after": Foreign(
        lambda: x_transformers.Encoder(**X, sandwich_norm=True), PLAIN, skipped=SIZE + PARITY
    ),
    "x-transformers Decoder": Foreign(
        lambda: x_transformers.Decoder(**X, attn_flash=True), PLAIN, {"causal": True}, ORDER
    ),
    "vit-pytorch Transformer": Foreign(lambda: without_final_norm(Transformer(D, 1, H, D // H, F, 0.1)), NO_MASK, skipped=MASK),
    "open_clip ResidualAttentionBlock, layer scale": Foreign(
        lambda: open_clip.ResidualAttentionBlock(D, H, ls_init_value=0.1), by_head, MASKED, PARITY
    ),
}


@pytest.mark.parametrize("seed, name", [(k % SEEDS, name) for k, name in enumerate(FOREIGN)])
def test_a_correct_block_of_another_package_is_not_accused(seed, name):
    report = FOREIGN[name].diagnose(seed)
    skipped = {"reference_parity", *FOREIGN[name].skipped.split()}
    outcomes = {finding.check: finding.outcome for finding in report.findings}
    assert outcomes == {check: NOT_APPLICABLE if check in skipped else PASSED for check in outcomes}, report.text


def no_attention_residual(self, x, attn_mask=None, is_causal=False):
    u = self.attn(self.norm1(x), attn_mask=attn_mask)
    return u + self.mlp(self.norm2(u))


def over_positions(self, x):
    return self.weight * x * torch.rsqrt(x.square().mean(-2, keepdim=True) + self.variance_epsilon)


def reads_padding(self, x, attention_mask=None, read=bert.BertSelfAttention.forward, **rest):
    return read(self, x, None, **rest)


def reads_later(self, attention_mask, read=llama.LlamaAttention.forward, **rest):
    return read(self, attention_mask=torch.zeros_like(attention_mask), **rest)


def over_queries(module, q, k, v, mask, scaling, **rest):
    weights = (q @ k.mT * scaling + (0 if mask is None else mask)).softmax(-2)
    return (weights @ v).transpose(1, 2).contiguous(), weights


def drops_in_eval(self, x):
    return functional.dropout(self.lin2(self.activation(self.lin1(x))), 0.1)


def writes_into_input(self, x):
    for attention, network in self.layers:
        x += attention(x)
        x += network(x)
    return x


BROKEN = [
    ("timm Block", vision_transformer.Block, "forward", no_attention_residual, "sublayers_off"),
    ("x-transformers Encoder", x_transformers.x_transformers.Residual, "forward", lambda self, x, residual, **_: x, "sublayers_off"),
    ("LlamaDecoderLayer", llama.LlamaRMSNorm, "forward", over_positions, "norm_axes"),
    ("LlamaDecoderLayer", llama.LlamaAttention, "forward", reads_later, "causality"),
    ("BertLayer", bert.BertSelfAttention, "forward", reads_padding, "padding_leak"),
    ("BertLayer", bert, "eager_attention_forward", over_queries, "padding_leak"),
    ("DistilBERT's TransformerBlock", distilbert.FFN, "ff_chunk", drops_in_eval, "train_eval"),
    ("open_clip ResidualAttentionBlock, layer scale", open_clip.LayerScale, "forward", lambda self, x: x * self.gamma.detach(), "gradient_reach"),
    ("vit-pytorch Transformer", Transformer, "forward", writes_into_input, "input_kept"),
]


@pytest.mark.parametrize("name, owner, place, wrong, check", BROKEN)
def test_the_same_block_with_one_line_changed_is_caught(monkeypatch, name, owner, place, wrong, check):
    monkeypatch.setattr(owner, place, wrong)
    assert FOREIGN[name].diagnose(seed=0, checks=[CHECKS[check]])[check].outcome == FAILED
