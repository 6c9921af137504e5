import pytest
import torch
from torch.nn.functional import layer_norm

from oneblock.errors import ArgumentError
from oneblock.polarity import (
    HALVES_AND_WHOLE,
    WAYS_AROUND,
    WORDS,
    AttentionHalf,
    FFNHalf,
    Reader,
    learned,
    mean_row,
    score,
    scores,
    sentences,
    spoken,
    votes,
)

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


@pytest.fixture
def loud_reader():
    """A reader of one head with large weights everywhere, so that no term of a vote is small."""
    torch.manual_seed(3)
    reader = Reader(6, AttentionHalf(6, H=1)).double()
    for parameter in reader.parameters():
        torch.nn.init.normal_(parameter)
    return reader


def test_a_sentence_is_praise_if_good_is_not_turned_round_or_bad_is():
    token_ids, praise = sentences(11, seed=5)
    said = [set(spoken(row).split()) for row in token_ids]
    as_a_speaker = [{"good", "so"} <= words or {"bad", "not"} <= words for words in said]
    assert praise.tolist() == as_a_speaker


def test_a_sentence_has_one_word_of_each_pair_and_ends_with_the_full_stop():
    for row in sentences(11, seed=5)[0]:
        said = spoken(row).split()
        assert [len({"good", "bad"} & set(said)), len({"so", "not"} & set(said))] == [1, 1]
        assert [said.count(word) <= 1 for word in ("good", "bad", "so", "not")] == [True] * 4
        assert len(said) == 7 and said.index(".") == 6


def test_four_in_a_row_differ_in_their_two_feature_words_only():
    fours = sentences(11, seed=5)[0].view(11, 4, 7)
    moved = (fours != fours[:, :1]).any(dim=1)
    assert (moved.sum(dim=1) == 2).all()
    pairs = [[frozenset(WORDS[t] for t in row[two]) for row in four] for four, two in zip(fours, moved)]
    assert all(pair == [{"bad", "not"}, {"good", "not"}, {"bad", "so"}, {"good", "so"}] for pair in pairs)


def test_the_feature_words_stand_at_every_place_but_the_last():
    token_ids, _ = sentences(64, seed=5)
    for word in ("good", "bad", "so", "not"):
        assert (token_ids == WORDS.index(word)).any(dim=0).tolist() == [True] * 6 + [False]


def test_a_seed_fixes_the_sentences():
    one, same, other = (sentences(11, seed)[0] for seed in (5, 5, 6))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_no_fours_are_refused():
    with pytest.raises(ArgumentError, match=r"^fours must be a whole number ≥ 1; got 0"):
        sentences(0, seed=5)


@pytest.mark.parametrize("models", [HALVES_AND_WHOLE, WAYS_AROUND])
def test_budgets_are_equal_within_one_percent(models):
    sizes = [sum(p.numel() for p in build().parameters()) for build in models.values()]
    assert max(sizes) <= 1.01 * min(sizes)


def test_each_half_is_its_half_of_the_equation(fixed):
    x = fixed(2, 7, 6)
    attend, process = AttentionHalf(6, H=3).double(), FFNHalf(6, F=5).double()
    mha = torch.nn.MultiheadAttention(6, 3, batch_first=True, dtype=torch.float64)
    mha.load_state_dict(attend.self_attn.state_dict())
    normed = layer_norm(x, (6,))
    hidden = torch.relu(torch.einsum("nld,fd->nlf", normed, process.ffn.linear1.weight) + process.ffn.linear1.bias)
    z = torch.einsum("nlf,df->nld", hidden, process.ffn.linear2.weight) + process.ffn.linear2.bias
    torch.testing.assert_close(attend(x) - x, mha(normed, normed, normed)[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(process(x) - x, z, rtol=0, atol=1e-12)


def test_at_the_full_stop_an_ffn_alone_sees_one_and_the_same_row():
    reader, (token_ids, _) = Reader(6, FFNHalf(6, F=5)), sentences(11, seed=5)
    torch.testing.assert_close(reader(token_ids), reader(token_ids[:1]).expand(44, 2))


def test_behind_a_mean_an_ffn_alone_adds_one_number_for_each_word():
    reader, (token_ids, _) = Reader(6, FFNHalf(6, F=5), mean_row), sentences(11, seed=5)
    torch.testing.assert_close(reader(token_ids), reader(token_ids.view(-1, 1)).view(44, 7, 2).mean(dim=1))


def test_votes_over_their_weights_are_the_difference_of_the_logits(loud_reader):
    token_ids, _ = sentences(11, seed=5)
    rows = loud_reader.block.norm1(loud_reader.embedding(token_ids))
    mha = loud_reader.block.self_attn
    q, k, _ = (rows @ mha.in_proj_weight.mT + mha.in_proj_bias).chunk(3, dim=-1)
    total = torch.einsum("nd,nld->nl", q[:, -1], k).div(6**0.5).exp().sum(dim=1)
    logits = loud_reader(token_ids)
    torch.testing.assert_close(votes(loud_reader, token_ids).sum(dim=1) / total, logits[:, 1] - logits[:, 0])


def test_a_vote_depends_on_its_own_word_alone(loud_reader):
    token_ids, _ = sentences(31, seed=5)
    cast = votes(loud_reader, token_ids)
    for word in token_ids.unique():
        of_word = cast[token_ids == word]
        torch.testing.assert_close(of_word, of_word[:1].expand_as(of_word))


@pytest.mark.parametrize("seed", range(7))
def test_one_head_never_has_a_whole_four_right_whatever_its_weights(seed):
    torch.manual_seed(seed)
    reader = Reader(6, AttentionHalf(6, H=1)).double()
    for parameter in reader.parameters():
        torch.nn.init.normal_(parameter, std=3)
    assert score(reader, seed=5).fours == 0 and score(reader, seed=5).sentences <= 0.75


@pytest.mark.parametrize("name", WAYS_AROUND)
def test_votes_are_counted_for_one_head_at_the_full_stop_only(name):
    due = r"^reader must be attention only, with one head, read at the full stop; got "
    with pytest.raises(ArgumentError, match=due):
        votes(WAYS_AROUND[name](), sentences(1, seed=5)[0])


def test_a_score_counts_sentences_and_whole_fours():
    class Parrot(torch.nn.Module):
        """Says praise where it hears good."""

        def forward(self, token_ids):
            heard = (token_ids == WORDS.index("good")).any(dim=1)
            return torch.stack([~heard, heard], dim=1).float()

    class Knower(torch.nn.Module):
        """Is right, but for the first sentence."""

        def forward(self, token_ids):
            good, so = ((token_ids == WORDS.index(word)).any(dim=1) for word in ("good", "so"))
            right = good == so
            right[0] = ~right[0]
            return torch.stack([~right, right], dim=1).float()

    assert score(Parrot(), seed=5, fours=8) == (0.5, 0.0)
    assert score(Knower(), seed=5, fours=8) == (31 / 32, 7 / 8)


def test_a_seed_fixes_what_is_learned_and_leaves_torchs_own_seed_alone():
    build = HALVES_AND_WHOLE["FFN only"]
    before = torch.random.get_rng_state()
    one, same, other = (learned(build, seed, steps=2).head.weight for seed in (5, 5, 6))
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_both_halves_fail_and_the_whole_succeeds():
    attention, process, whole = (scores(build, seeds=[0])[0] for build in HALVES_AND_WHOLE.values())
    assert attention.sentences <= 0.75 and attention.fours == 0
    assert process.sentences <= 0.51 and process.fours == 0
    assert whole == (1, 1)


def test_two_ways_lead_round_the_votes_and_one_does_not():
    two_heads, every_asker, process = (scores(build, seeds=[1])[0].fours for build in WAYS_AROUND.values())
    assert two_heads > 0.9 and every_asker > 0.9 and process == 0
