"""A classifier of any convention is called as it wants to be, and all that it holds is found."""

from types import SimpleNamespace
from unittest import SkipTest

import pytest
import torch
from torch import nn

from oneblock.checks import MODEL_CHECKS, IdsAdapter, Model, diagnose_model, model_of, pytest_model_checks
from oneblock.checks.models.held import held, hidden
from oneblock.checks.models.model import ids_adapter_for
from oneblock.checks.models.probes import length, longest, padded, ragged, tables, texts
from oneblock.classifier import Classifier
from oneblock.errors import ArgumentError, ShapeError
from oneblock.mutants.catalogue import MISTAKES

IDS = torch.tensor([[3, 4, 0], [2, 2, 5]])
VALID = IDS != 0
SIZES = {"V": 13, "C": 5, "L": 11, "D": 6, "H": 2, "F": 7, "K": 2}


class Listens(nn.Module):
    """Keeps what it is given."""

    def __init__(self, result=lambda ids: torch.zeros(len(ids), 5)):
        super().__init__()
        self.result, self.heard = result, None

    def forward(self, token_ids, mask=None, **named):
        self.heard = (token_ids, mask if mask is not None else next(iter(named.values()), None), tuple(named))
        return self.result(token_ids)


@pytest.mark.parametrize("meaning, due", [("real", VALID), ("padding", ~VALID), ("ones", VALID.long())])
@pytest.mark.parametrize("name", [None, "keep"])
def test_a_mask_arrives_with_its_meaning_and_under_its_name(meaning, due, name):
    model = Listens()
    IdsAdapter(meaning, name)(model, IDS, VALID)
    assert model.heard[1].tolist() == due.tolist() and model.heard[1].dtype == due.dtype
    assert model.heard[2] == (() if name is None else (name,))


def test_a_model_that_takes_no_mask_gets_none():
    model = Listens()
    IdsAdapter()(model, IDS, VALID)
    assert model.heard[1] is None


def test_without_a_mask_all_but_the_padding_id_is_real():
    model = Listens()
    Model(model, 13, IdsAdapter("real"), padding=2)(IDS)
    assert torch.equal(model.heard[1], IDS != 2)


@pytest.mark.parametrize("result", [lambda y: (y, None), lambda y: [y], lambda y: SimpleNamespace(logits=y), lambda y: y])
def test_logits_are_found_in_what_comes_back(result):
    y = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert Model(Listens(lambda ids: result(y)), 13, IdsAdapter())(IDS) is y


def test_ids_are_handed_over_as_a_copy():
    ids = IDS.clone()
    Model(Listens(lambda ids: ids.zero_().double()), 13, IdsAdapter())(ids)
    assert torch.equal(ids, IDS)


class Named(nn.Module):
    def __init__(self, name):
        super().__init__()
        exec(f"def forward(token_ids, {name}=None): return token_ids", given := {})
        self.forward = given["forward"]


@pytest.mark.parametrize(
    "name, due",
    [("valid_tokens", "real"), ("src_key_padding_mask", "padding"), ("key_padding_mask", "padding"), ("attention_mask", "ones")],
)
def test_a_name_that_tells_the_meaning_is_known(name, due):
    assert ids_adapter_for(Named(name)) == IdsAdapter(due, name)
    assert model_of(Named(name), 13).takes_mask


def test_the_librarys_classifier_takes_ids_alone():
    model = model_of(Classifier(**SIZES).double(), 13, L=11)
    assert model.call == IdsAdapter() and not model.takes_mask and model.like.dtype == torch.float64 and model.L == 11
    assert model_of(model) is model


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: model_of(3, 13), r"^model must be a torch module; got 3; call the factory"),
        (lambda: model_of(Listens()), r"^V must be a whole number ≥ 1; got None"),
        (lambda: model_of(Named("mask"), 13), r"^call must be an IdsAdapter that says what .*got \['mask'\]; IdsAdapter\('real', name\)"),
        (lambda: IdsAdapter("additive"), r"^mask must be None or one of real, padding, ones; got 'additive'"),
        (lambda: diagnose_model(Named("mask_of_some_kind"), 0), r"^V must be a whole number ≥ 1; got 0"),
    ],
)
def test_what_cannot_be_understood_is_refused(wrong, message):
    with pytest.raises(ArgumentError, match=message):
        wrong()


def test_what_is_no_tensor_is_refused():
    with pytest.raises(ShapeError, match=r"^model must be a module that returns logits \[N, C\]; got 'dict'"):
        Model(Listens(lambda ids: {}), 13, IdsAdapter())(IDS)


class Holds(nn.Module):
    """A module in each kind of place, one of them twice, and the whole in a part."""

    def __init__(self):
        super().__init__()
        self.known, self.listed = nn.Sequential(nn.Linear(2, 3)), [nn.Linear(3, 2), {"deep": (nn.Linear(5, 2),)}]
        self.again = [self.known]
        self.known.whole = [self]


def test_all_that_is_held_is_found_by_its_way_and_once():
    model = Holds()
    found = held(model)
    assert {name.partition('.')[0] for name in found} <= {'', 'known', 'again', 'listed'}
    assert found["listed.1.deep.0"].in_features == 5 and len({id(part) for part in found.values()}) == 5
    assert set(hidden(model)) == {"listed.0", "listed.1.deep.0"}


@pytest.mark.parametrize("padding", [0, 4, 12])
def test_texts_have_every_id_but_that_of_padding_which_stands_behind(padding):
    model = Model(nn.Identity(), 13, IdsAdapter(), padding=padding)
    full, some = texts(model, (40,) * 5), texts(model, (5, 7, 2))
    assert set(full.unique().tolist()) == set(range(13)) - {padding}
    assert (some != padding).sum(1).tolist() == [5, 7, 2] and (some[2, 2:] == padding).all()
    assert (padded(model, some, 9)[:, 7:] == padding).all() and torch.equal(padded(model, some, 5), some[:, :5])


@pytest.mark.parametrize("L, due", [(None, (7, 11)), (11, (7, 11)), (8, (7, 8)), (3, (3, 3)), (1, (1, 1))])
def test_texts_are_no_longer_than_the_model_takes(L, due):
    model = Model(nn.Identity(), 13, IdsAdapter(), L=L)
    assert (length(model), longest(model)) == due
    assert max(ragged(model)) == due[0] and min(ragged(model)) >= 1


def test_the_table_of_words_is_that_which_is_called_with_the_ids():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.places, self.words = nn.Embedding(13, 6), nn.Embedding(13, 6)

        def forward(self, token_ids):
            return (self.words(token_ids) + self.places(torch.arange(token_ids.shape[1]))).mean(1)

    two = Two()
    (found,) = tables(model_of(two, 13))
    assert torch.equal(found.weight, two.words.weight)


TestClassifier = pytest_model_checks(lambda: Classifier(**SIZES), V=13, L=11)  # a reader's three lines, of which one is skipped


def test_a_readers_suite_has_a_test_a_check_and_fails_as_the_report_does():
    suite = pytest_model_checks(lambda: model_of(MISTAKES["last_position"].build(6, 2, 7), 13))
    assert [name for name in vars(suite) if name.startswith("test_")] == [f"test_{check}" for check in MODEL_CHECKS]
    with pytest.raises(AssertionError, match="Is blind to padding: failed"):
        suite().test_logits_padding()
    with pytest.raises(SkipTest, match="This check needs reference"):
        suite().test_logits_reference()


def kept(model):
    """What must be the same afterwards, in parts that torch does not know of, too."""
    parts = held(model)
    tensors = {f"{name}.{own}": value for name, part in parts.items() for own, value in part.named_parameters(recurse=False)}
    return {
        "values": {name: value.tolist() for name, value in tensors.items()},
        "learning": {name: (value.requires_grad, value.grad is None) for name, value in tensors.items()},
        "modes": {name: (part.training, len(part._forward_hooks), len(part._forward_pre_hooks)) for name, part in parts.items()},
        "rates": [part.p for part in parts.values() if isinstance(part, nn.Dropout)],
        "random": torch.get_rng_state().tolist(),
    }


@pytest.mark.parametrize("name", ["no_final_norm", "blocks_in_a_list", "one_block_k_times"])
def test_the_checks_leave_no_trace(name):
    model, right = MISTAKES[name].build(6, 2, 7, dropout=0.1).eval(), MISTAKES[name].build_right(6, 2, 7)
    model.head.train()
    model.embedding.weight.requires_grad_(False)
    before = kept(model)
    diagnose_model(model, 13, reference=right)
    assert kept(model) == before
