import math
from copy import deepcopy
from itertools import repeat

import pytest
import torch
from torch import nn

from oneblock import training
from oneblock.errors import ArgumentError
from oneblock.training import Training, evaluate, step, train

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


class TwoClasses(nn.Module):
    """One number θ: the logits of an input x are [0, θx]."""

    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

    def forward(self, x):
        return torch.stack([0 * x, self.theta * x], dim=-1)


def adam_by_hand(theta, x, lr, warmup, steps):
    """Adam on −log p(class 1) of one x, in plain numbers."""
    m = v = 0.0
    losses = []
    for t in range(1, steps + 1):
        losses.append(math.log1p(math.exp(-theta * x)))
        gradient = -x / (1 + math.exp(theta * x))
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        rate = lr if t > warmup else lr * t / warmup
        theta -= rate * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta, losses


@pytest.mark.parametrize("warmup", [0, 1, 3, 20])
def test_each_step_is_adams_step_with_its_share_of_the_learning_rate(warmup):
    model, x = TwoClasses(), torch.tensor([1.7], dtype=torch.float64)
    losses = train(model, repeat((x, torch.tensor([1])), 7), lr=0.05, warmup=warmup)
    theta, by_hand = adam_by_hand(0.3, 1.7, 0.05, warmup, 7)
    assert losses == pytest.approx(by_hand, rel=1e-12)
    assert model.theta.item() == pytest.approx(theta, rel=1e-12)


def test_the_loss_is_the_mean_over_every_position(fixed):
    model, x = TwoClasses(), fixed(2, 3)
    classes = torch.tensor([[0, 1, 1], [1, 0, 1]])
    (loss,) = train(model, [(x, classes)], lr=0.01)
    each = [math.log1p(math.exp(0.3 * z if c == 0 else -0.3 * z)) for z, c in zip(x.flatten(), classes.flatten())]
    assert loss == pytest.approx(sum(each) / 6, rel=1e-12)


def test_batches_are_taken_in_turn(fixed):
    model = TwoClasses()
    batches = [(fixed(5, seed=seed), torch.ones(5, dtype=torch.long)) for seed in range(3)]
    losses = train(model, batches, lr=1e-12)
    assert losses == pytest.approx([torch.log1p(torch.exp(-0.3 * x)).mean().item() for x, _ in batches], rel=1e-9)


@pytest.mark.parametrize("lr", [0, -0.1, math.nan, math.inf, True, "fast"])
def test_a_learning_rate_that_is_no_step_is_refused(lr):
    with pytest.raises(ArgumentError, match=r"^lr must be a finite number > 0; got "):
        train(TwoClasses(), [], lr=lr)


@pytest.mark.parametrize("warmup", [-1, 2.5, math.inf, math.nan, None])
def test_a_warm_up_that_is_no_number_of_steps_is_refused(warmup):
    with pytest.raises(ArgumentError, match=r"^warmup must be a whole number ≥ 0; got "):
        train(TwoClasses(), [], lr=0.1, warmup=warmup)


class Line(nn.Module):
    """Three classes from two numbers, with dropout, so that training draws at random."""

    def __init__(self):
        super().__init__()
        self.linear, self.dropout = nn.Linear(2, 3, dtype=torch.float64), nn.Dropout(0.3)

    def forward(self, x):
        return self.linear(self.dropout(x))


@pytest.fixture
def line(fixed):
    line = Line()
    line.linear.weight.data, line.linear.bias.data = fixed(3, 2, seed=8), fixed(3, seed=9)
    return line


@pytest.fixture
def parts(fixed):
    """11 training texts and 7 others, of three classes that a line can tell in part."""

    def part(n, seed):
        x = fixed(n, 2, seed=seed)
        return x, (x[:, 0] > 0).long() + (x[:, 1] > 0.3).long()

    return part(11, 1), part(7, 2)


def a_run(line, parts, **options):
    return Training(deepcopy(line), *parts, lr=0.05, batch=4, decay=0.75, **options)


def same_state(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_a_step_moves_against_the_clipped_gradient(line, parts):
    (x, classes), _ = parts
    line.eval()
    before = deepcopy(line)
    loss = step(line, torch.optim.SGD(line.parameters(), lr=1.0), 1000 * x, classes)
    logits = 1000 * x @ before.linear.weight.T + before.linear.bias
    off = (logits.softmax(1) - nn.functional.one_hot(classes, 3)) / len(x)
    W, b = off.T @ (1000 * x), off.sum(0)
    norm = (W.square().sum() + b.square().sum()).sqrt()
    assert norm > 10 and loss == pytest.approx((logits.logsumexp(1) - logits[range(11), classes]).mean().item())
    torch.testing.assert_close(line.linear.weight, before.linear.weight - W / norm, atol=1e-6, rtol=0)
    torch.testing.assert_close(line.linear.bias, before.linear.bias - b / norm, atol=1e-6, rtol=0)


def test_a_step_leaves_a_short_gradient_as_it_is_and_forgets_the_one_before(line, parts):
    (x, classes), _ = parts
    line.eval()
    line.linear.weight.grad = torch.full((3, 2), 1e6, dtype=torch.float64)
    before = deepcopy(line)
    step(line, torch.optim.SGD(line.parameters(), lr=1.0), x, classes)
    off = ((x @ before.linear.weight.T + before.linear.bias).softmax(1) - nn.functional.one_hot(classes, 3)) / 11
    torch.testing.assert_close(line.linear.weight, before.linear.weight - off.T @ x, atol=1e-12, rtol=0)


@pytest.mark.parametrize("spoilt", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_refused_and_nothing_moves(line, parts, spoilt):
    (x, classes), _ = parts
    x[3, 1] = spoilt
    before = deepcopy(line)
    with pytest.raises(ArgumentError, match=r"^the gradient must be finite, at a loss of nan; got .*the step was not taken.*lower the"):
        step(line.eval(), torch.optim.Adam(line.parameters()), x, classes)
    assert same_state(line, before)


def test_evaluation_is_without_dropout_and_leaves_the_mode(line, parts):
    _, (x, classes) = parts
    logits = x @ line.linear.weight.T + line.linear.bias
    due = (logits.logsumexp(1) - logits[range(7), classes]).mean().item()
    right = sum(row.index(max(row)) == c for row, c in zip(logits.tolist(), classes.tolist(), strict=True)) / 7
    for mode in (True, False):
        line.train(mode)
        assert evaluate(line, x, classes) == pytest.approx((due, right)) and line.training == mode


def test_evaluation_leaves_a_part_that_is_frozen_in_eval_there(line, parts):
    line.train().linear.eval()
    evaluate(line, *parts[1])
    assert line.training and not line.linear.training


def test_an_epoch_without_a_loss_is_not_the_best_one(line, parts, monkeypatch):
    run, losses = a_run(line, parts), iter([math.nan, 2.0, 3.0])
    monkeypatch.setattr(training, "evaluate", lambda *_: (next(losses), 0.5))
    run.fit(2)
    second = deepcopy(run.last)
    run.fit(3)
    assert all(torch.equal(run.best[name], second[name]) for name in second) and not run.is_stale()


def test_every_text_is_seen_once_an_epoch_in_an_order_of_the_seed(line, parts, monkeypatch):
    seen = []

    def note(model, optimizer, inputs, classes):
        seen.append(inputs[:, 0].tolist())
        return 0.5

    monkeypatch.setattr(training, "step", note)
    run = a_run(line, parts, seed=3)
    run.fit(2)
    epochs = [sum(seen[:3], []), sum(seen[3:], [])]
    assert [len(batch) for batch in seen] == [4, 4, 3] * 2 and epochs[0] != epochs[1]
    assert all(sorted(epoch) == sorted(parts[0][0][:, 0].tolist()) for epoch in epochs)
    assert [epoch.training_loss for epoch in run.history] == [0.5, 0.5]


def test_the_history_holds_the_loss_and_the_accuracy_after_each_epoch(line, parts):
    run = a_run(line, parts)
    history = run.fit(3)
    run.model.load_state_dict(run.last)
    assert len(history) == 3 and history[-1][1:] == evaluate(run.model, *parts[1])


def test_three_epochs_a_checkpoint_and_three_more_are_six_to_the_bit(line, parts, tmp_path):
    whole, half = a_run(line, parts, seed=5, patience=9), a_run(line, parts, seed=5, patience=9)
    whole.fit(6)
    half.fit(3)
    torch.save(half.state_dict(), tmp_path / "run.pt")
    torch.manual_seed(123)
    resumed = a_run(Line(), parts, seed=77, patience=9)
    resumed.load_state_dict(torch.load(tmp_path / "run.pt", weights_only=True))
    resumed.fit(6)
    assert resumed.history == whole.history and same_state(resumed.model, whole.model)
    assert all(torch.equal(resumed.last[name], whole.last[name]) for name in whole.last)
    assert torch.equal(resumed.random, whole.random)


def test_two_runs_can_go_on_from_one_state_and_from_one_kept_in_memory(line, parts):
    half = a_run(line, parts, patience=9)
    half.fit(3)
    state, runs = half.state_dict(), [a_run(Line(), parts, patience=9) for _ in range(2)]
    for run in runs:
        run.load_state_dict(state)
        run.fit(6)
    assert runs[0].history == runs[1].history == half.fit(6)


def test_a_model_that_was_in_eval_is_trained_with_its_dropout(line, parts):
    due = a_run(line, parts).fit(2)
    assert a_run(line.eval(), parts).fit(2) == due


def test_a_run_can_go_on_after_its_model_took_the_best_state(line, parts):
    whole, half = a_run(line, parts, patience=9), a_run(line, parts, patience=9)
    half.fit(4)
    assert half.fit(9) == whole.fit(9)


def test_the_same_seed_gives_the_same_run_and_torchs_own_is_left_alone(line, parts):
    torch.manual_seed(1)
    due = torch.rand(3)
    torch.manual_seed(1)
    one = a_run(line, parts, seed=4).fit(2)
    assert torch.equal(torch.rand(3), due)
    assert a_run(line, parts, seed=4).fit(2) == one != a_run(line, parts, seed=5).fit(2)


@pytest.mark.parametrize(("losses", "taken", "best"), [([3, 2, 1, 1.5, 1.2, 0.5], 5, 2), ([3, 2, 2, 1, 4, 3], 6, 3), ([1, 2, 3, 0], 3, 0)])
def test_a_run_ends_when_two_epochs_were_no_better_and_takes_the_best_state(line, parts, monkeypatch, losses, taken, best):
    states, given = [], iter(losses)

    def note(model, *_):
        states.append(deepcopy(model))
        return float(next(given)), 0.5

    monkeypatch.setattr(training, "evaluate", note)
    run = a_run(line, parts, patience=2)
    run.fit(len(losses))
    assert [epoch.loss for epoch in run.history] == losses[:taken]
    assert same_state(run.model, states[best]) and not same_state(run.model, states[best - 1])


def test_progress_is_shown_the_epochs_to_come(line, parts):
    shown = []

    def progress(epochs):
        for epoch in epochs:
            shown.append(epoch)
            yield epoch

    run = a_run(line, parts, patience=9)
    run.fit(2, progress)
    run.fit(5, progress)
    assert shown == [0, 1, 2, 3, 4]


def test_each_epoch_takes_a_share_of_the_rate_of_the_one_before(line, parts, monkeypatch):
    rates = []

    def note(model, optimizer, inputs, classes):
        rates.append(optimizer.param_groups[0]["lr"])
        return 0.5

    monkeypatch.setattr(training, "step", note)
    a_run(line, parts, patience=9).fit(3)
    assert rates == pytest.approx([0.05] * 3 + [0.0375] * 3 + [0.028125] * 3)


@pytest.mark.parametrize(("option", "due"), [("decay", r"a number in \(0, 1\]"), ("lr", "a finite number > 0"), ("batch", "a whole number ≥ 1"), ("patience", "a whole number ≥ 1")])
@pytest.mark.parametrize("value", [0, -1, math.nan, "3"])
def test_an_option_of_a_run_that_trains_nothing_is_refused(line, parts, option, due, value):
    with pytest.raises(ArgumentError, match=rf"^{option} must be {due}; got "):
        Training(line, *parts, **{"lr": 0.1, option: value})
