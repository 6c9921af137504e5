"""No check accuses the classifiers of transformers; nothing is downloaded, they are small and have random first values."""

import contextlib

import pytest
import torch

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

with contextlib.suppress(RuntimeError):  # as in test_checks_foreign.py
    import torchvision
for _operator in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, _operator):
        torch.library.define(f"torchvision::{_operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import transformers as hf

from oneblock.checks import diagnose_model
from oneblock.checks.finding import FAILED

V = 17
OUT = {"vocab_size": V, "num_labels": 3, "pad_token_id": 0}
SIZES = OUT | {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
SIZES |= {"max_position_embeddings": 18}
SPECIAL = {"cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = OUT | {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 18, "bos_token_id": 1, "eos_token_id": 2}
DISTIL = OUT | {"dim": 24, "n_layers": 2, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 18}
KINDS = {
    "bert": (lambda: hf.BertForSequenceClassification(hf.BertConfig(**SIZES)), {"C": 3}),
    "distilbert": (lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**DISTIL)), {}),
    "albert": (lambda: hf.AlbertForSequenceClassification(hf.AlbertConfig(**SIZES, embedding_size=20)), {"shared": True}),
    "roberta": (lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(**SIZES | {"pad_token_id": 1})), {"padding": 1}),
    "modernbert": (lambda: hf.ModernBertForSequenceClassification(hf.ModernBertConfig(**SIZES, **SPECIAL)), {}),
    # these two look for the last token by the id of padding, also where a mask is given
    "gpt2": (lambda: hf.GPT2ForSequenceClassification(hf.GPT2Config(**GPT2)), {"takes_mask": False}),
    "llama": (lambda: hf.LlamaForSequenceClassification(hf.LlamaConfig(**SIZES)), {"takes_mask": False}),
}


@pytest.mark.parametrize("seed, kind", [(seed, list(KINDS)[seed % len(KINDS)]) for seed in range(2 * len(KINDS))])
def test_a_classifier_of_transformers_passes_every_check(seed, kind):
    make, claims = KINDS[kind]
    torch.manual_seed(seed)
    dtype = (torch.float32, torch.float64)[seed // len(KINDS)]
    report = diagnose_model(make().to(dtype), V, **claims)
    assert report.ok, report.text


def test_that_gpt2_looks_for_the_id_beside_the_mask_is_told():
    torch.manual_seed(0)
    report = diagnose_model(KINDS["gpt2"][0](), V)
    assert {one.check for one in report.findings if one.outcome == FAILED} == {"logits_padding"}
    assert report["logits_padding"].worst[0].endswith("other ids for padding")
    assert "takes_mask=False" in report.text


def test_that_fnet_takes_no_mask_is_told():
    torch.manual_seed(0)
    sizes = {name: value for name, value in SIZES.items() if name != "num_attention_heads"}
    report = diagnose_model(hf.FNetForSequenceClassification(hf.FNetConfig(**sizes)), V)
    assert {one.check for one in report.findings if one.outcome == FAILED} == {"logits_padding"}
