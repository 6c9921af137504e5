"""The classifier is its equation, padding reaches no logit, and every contract has its message."""

import pytest
import torch
from torch import nn

from oneblock.classifier import Classifier, classified, probabilities, stages
from oneblock.errors import ArgumentError, ShapeError
from oneblock.official import to_official
from oneblock.tour import tour
from oneblock.widgets import steps_view

N, L, V, C, D, H, F, K = 2, 5, 11, 7, 6, 3, 13, 2


@pytest.fixture
def classifier(fixed):
    classifier = Classifier(V, C, L, D, H, F, K, dropout=0.25).double().eval()
    for seed, parameter in enumerate(classifier.parameters(), start=1):
        parameter.data = fixed(*parameter.shape, seed=seed)
    return classifier


@pytest.fixture
def ids():
    return torch.tensor([[3, 10, 1, 0, 0], [2, 4, 9, 9, 7]])


def test_the_logits_are_those_of_torchs_own_layers(classifier, ids):
    real = ids != 0
    x = nn.functional.embedding(ids, classifier.embedding.weight) + classifier.positions
    for block in classifier.blocks:
        x = to_official(block)(x, src_key_padding_mask=~real)
    rows = nn.functional.layer_norm(x, (D,), classifier.norm.weight, classifier.norm.bias)
    means = torch.stack([row[keep].mean(0) for row, keep in zip(rows, real, strict=True)])
    due = means @ classifier.head.weight.T + classifier.head.bias
    torch.testing.assert_close(classifier(ids), due, atol=1e-12, rtol=0)


def test_a_shorter_batch_gives_the_same_logits(classifier, ids):
    torch.testing.assert_close(classifier(ids[:1, :3]), classifier(ids[:1]), atol=1e-13, rtol=0)


def test_what_padding_holds_reaches_no_logit(classifier, ids, fixed):
    real, x = ids != 0, classifier.rows(ids)
    refilled = torch.where(real[..., None], x, 100 * fixed(N, L, D, seed=50))
    before, after = classifier.from_rows(x, real), classifier.from_rows(refilled, real)
    torch.testing.assert_close(after, before, atol=1e-12, rtol=0)
    assert torch.equal(before, classifier(ids))
    everything = torch.ones_like(real)
    assert (classifier.from_rows(refilled, everything) - classifier.from_rows(x, everything)).abs().max() > 0.1


def test_the_order_of_the_words_counts_by_the_positions_alone(classifier, ids):
    turned = ids[1:, [2, 0, 1, 4, 3]]
    assert (classifier(turned) - classifier(ids[1:])).abs().max() > 0.01
    classifier.positions.data.zero_()
    torch.testing.assert_close(classifier(turned), classifier(ids[1:]), atol=1e-12, rtol=0)


def test_a_run_is_recorded_stage_by_stage(classifier, ids):
    trace = classified(classifier, ids)
    wanted = ("embedded", "X", "block1.sum2.y", "block2.norm1.ln", "block2.sum2.y", "final.ln", "pooled", "logits", "probabilities")
    assert [name for name in trace.names if name in wanted] == list(wanted)
    assert trace.step("block1.q").reads["x"] == "block1.norm1.ln" and trace.step("block2.sum1.y").reads["x"] == "block1.sum2.y"
    assert {trace.step(f"block{k}.masked_scores").reads["valid_tokens"] for k in (1, 2)} == {"block1.valid_tokens"}
    torch.testing.assert_close(trace["logits"], classifier(ids), atol=1e-12, rtol=0)
    assert trace.axes("logits") == ("N", "C") and trace.axes("P") == ("L", "D") and trace.axes("token_ids") == ("N", "L")


@pytest.mark.parametrize("name", ["logits", "probabilities"])
def test_the_last_steps_follow_from_their_formulas(classifier, ids, worked_out, name):
    trace = classified(classifier, ids).pick(n=1)
    from_formula, from_tensor = worked_out(trace, trace.step(name))
    assert from_formula == pytest.approx(from_tensor, abs=1e-12)


def test_a_tour_has_the_stages_that_a_reader_steps_through(classifier, ids):
    trace = tour(classified(classifier, ids).pick(n=0), stages(K))
    view = steps_view(trace)
    assert [step["formula"] for step in view.frame["steps"][1:]] == [
        "e = Embedding(ids)",
        "X = e + P",
        "Y (block1) = Block(X)",
        "Y (block2) = Block(Y (block1))",
        "Ŷ = LN(Y (block2))",
        "pooled = mean of real rows of Ŷ",
        "logits = W_C pooled + b_C",
        "p = softmax(logits)",
    ]
    torch.testing.assert_close(trace["probabilities"].sum(), torch.tensor(1.0, dtype=torch.float64))


def test_probabilities_keep_the_order_and_sum_to_one(fixed):
    logits = 5 * fixed(N, C)
    p = probabilities(logits)
    torch.testing.assert_close(p, logits.exp() / logits.exp().sum(1, keepdim=True), atol=1e-14, rtol=0)


def test_a_loss_on_the_logits_reaches_every_parameter_but_that_of_padding(classifier, ids):
    nn.functional.cross_entropy(classifier(ids), torch.tensor([3, 5])).backward()
    grads = {name: parameter.grad for name, parameter in classifier.named_parameters()}
    assert all(grad is not None and grad.abs().max() > 0 for grad in grads.values())
    assert (grads["embedding.weight"][0] == 0).all() and (grads["embedding.weight"][[1, 2, 3, 4, 7, 9, 10]] != 0).any(1).all()


def test_the_exported_program_gives_the_same_logits_for_any_batch(classifier, ids):
    batch = torch.export.Dim("N", min=1, max=64)
    program = torch.export.export(classifier, (ids,), dynamic_shapes=({0: batch},)).module()
    more = torch.randint(1, V, (7, L), generator=torch.Generator().manual_seed(0))
    more[:, 3:] *= torch.tensor([0, 1, 0, 1, 1, 0, 1])[:, None]
    for tokens in (ids, more, ids[:1]):
        torch.testing.assert_close(program(tokens), classifier(tokens), atol=1e-12, rtol=0)


def test_a_mode_is_kept_by_training_and_left_by_eval(classifier, ids):
    assert torch.equal(classifier(ids), classifier(ids))
    classifier.train()
    assert not torch.equal(classifier(ids), classifier(ids))


def test_first_embeddings_and_positions_have_the_deviation_asked_for():
    torch.manual_seed(0)
    small, large = (Classifier(1009, C, 499, D, H, F, 1, scale=scale) for scale in (0.02, 0.5))
    for one, scale in ((small, 0.02), (large, 0.5)):
        assert one.embedding.weight.std().item() == pytest.approx(scale, rel=0.05)
        assert one.positions.std().item() == pytest.approx(scale, rel=0.05)


@pytest.mark.parametrize(
    ("token_ids", "message"),
    [
        (torch.tensor([[1.0, 2.0]]), r"^token_ids must be int64 \[N, L\] with L at most 5; got float32 \[1, 2\]"),
        (torch.tensor([[1, 2]], dtype=torch.int32), r"^token_ids must be int64 .*got int32 \[1, 2\]"),
        ([[1, 2]], r"^token_ids must be int64 .*got \[\[1, 2\]\]; a vocabulary's encode\(\) gives them"),
        (torch.tensor([1, 2]), r"^token_ids must be int64 .*got int64 \[2\]; .*one text is a batch of one"),
        (torch.ones(2, 6, dtype=torch.int64), r"^token_ids must be int64 \[N, L\] with L at most 5; got int64 \[2, 6\]"),
        (torch.ones(2, 0, dtype=torch.int64), r"^token_ids must be int64 .*got int64 \[2, 0\]"),
        (torch.tensor([[1, 11]]), r"^token_ids must be from 0 to 10, as V = 11; got \[11\]"),
        (torch.tensor([[1, 11, -2]]), r"^token_ids must be from 0 to 10, as V = 11; got \[-2, 11\]"),
    ],
)
@pytest.mark.usefixtures("as_readers_run_it")
def test_ids_that_have_no_row_are_refused(classifier, token_ids, message):
    with pytest.raises(ArgumentError, match=message):
        classifier(token_ids)


def test_a_text_of_padding_alone_is_refused(classifier):
    with pytest.raises(ArgumentError, match=r"^valid_tokens must be .*rows \[1\] are all padding; drop those texts"):
        classifier(torch.tensor([[3, 0], [0, 0]]))


@pytest.mark.parametrize("name", ["V", "C", "L", "D", "K"])
@pytest.mark.parametrize("size", [0, -1, 2.5])
@pytest.mark.usefixtures("as_readers_run_it")
def test_a_size_that_is_none_is_refused(name, size):
    sizes = {"V": V, "C": C, "L": L, "D": D, "H": H, "F": F, "K": K, name: size}
    with pytest.raises(ArgumentError, match=rf"^{name} must be a whole number ≥ 1; got "):
        Classifier(**sizes)


@pytest.mark.parametrize("scale", [0, -0.1, float("inf"), float("nan"), True])
@pytest.mark.usefixtures("as_readers_run_it")
def test_a_scale_that_draws_nothing_is_refused(scale):
    with pytest.raises(ArgumentError, match=r"^scale must be a finite number > 0; got "):
        Classifier(V, C, L, D, H, F, K, scale=scale)


@pytest.mark.usefixtures("as_readers_run_it")
def test_probabilities_are_of_logits(fixed):
    with pytest.raises(ShapeError, match=r"^logits must be floating \[N, C\]; got float64 \[7\]"):
        probabilities(fixed(C))
