import pytest
import torch

from oneblock.failures.ragged import ROUTES, D, tried

RUN = ["padded, with a mask", "packed, with a mask", "packed, flex_attention", "nested, jagged", "encoder: nested by itself"]


@pytest.fixture
def texts(fixed):
    return [fixed(n, D, seed=n, dtype=torch.float32) for n in (61, 7, 13)]


@pytest.mark.parametrize("name", RUN)
def test_a_route_that_runs_gives_each_text_what_it_gives_it_alone(texts, name):
    found = tried(ROUTES[name], texts)
    assert found.error == "" and found.gap < 1e-5


def test_what_a_route_gives_is_compared_text_by_text(texts):
    route = ROUTES["packed, with a mask"]
    swapped = route._replace(call=lambda texts: route.call(texts[::-1]))
    assert tried(swapped, texts).gap > 0.1


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("varlen_attn", "NotImplementedError: Could not run 'aten::_flash_attention_forward' with arguments from the 'CPU'"),
        ("encoder: given jagged", "AssertionError: MultiheadAttention does not support NestedTensor outside of its fast path"),
    ],
)
def test_a_route_that_does_not_run_says_why(texts, name, error):
    assert tried(ROUTES[name], texts).error.startswith(error)


def test_nested_tensors_are_padded_on_the_way():
    assert {name for name in RUN if tried(ROUTES[name], [torch.ones(3, D), torch.ones(2, D)]).pads} == set(RUN[3:])


def test_on_cpu_a_nested_tensor_holds_more_than_the_padded_rectangle(texts):
    assert tried(ROUTES["nested, jagged"], texts).peak > 5 * tried(ROUTES["padded, with a mask"], texts).peak
