import math

import pytest
import torch

from oneblock.errors import ArgumentError
from oneblock.failures.positions import LearnedRows, NoPlaces, Sinusoids

pytestmark = pytest.mark.usefixtures("as_readers_run_it")
PLACES = torch.tensor([[0, 1, 4], [2, 2, 3]])


def test_a_learned_row_is_that_of_its_place():
    rows = LearnedRows(7, 5)
    for n, i in ((0, 2), (1, 0), (1, 1)):
        torch.testing.assert_close(rows(PLACES)[n, i], rows.table.weight[PLACES[n, i]])


def test_only_the_rows_that_were_met_get_a_gradient():
    rows = LearnedRows(7, 11)
    rows(PLACES).square().sum().backward()
    assert rows.table.weight.grad.abs().amax(1).bool().tolist() == [True] * 5 + [False] * 6


def test_sinusoids_are_sines_and_cosines_number_by_number():
    rows = Sinusoids(6).double()(torch.tensor([0, 3, 700]))
    for row, place in zip(rows.tolist(), (0, 3, 700), strict=True):
        angles = [place / 10_000 ** (2 * k / 6) for k in range(3)]
        due = [f(angle) for angle in angles for f in (math.sin, math.cos)]
        assert row == pytest.approx(due, abs=1e-4)


def test_the_product_of_two_sinusoids_depends_on_their_distance_alone():
    rows = Sinusoids(8).double()
    near, far = rows(torch.tensor([3, 10])), rows(torch.tensor([2003, 2010]))
    torch.testing.assert_close(near[0] @ near[1], far[0] @ far[1])


def test_without_places_all_rows_are_zero():
    assert torch.equal(NoPlaces(5)(PLACES), torch.zeros(2, 3, 5))


def test_a_place_without_a_row_is_refused():
    with pytest.raises(ArgumentError, match="places must be from 0 to 3, as there are 4 rows; got 4; cut the text"):
        LearnedRows(7, 4)(PLACES)


def test_an_odd_width_is_refused():
    with pytest.raises(ArgumentError, match="D must be even, a sine and a cosine for each frequency; got 7"):
        Sinusoids(7)
    for kind in (NoPlaces, Sinusoids, lambda D: LearnedRows(D, 3)):
        with pytest.raises(ArgumentError, match="D must be a whole number ≥ 1; got 0"):
            kind(0)
