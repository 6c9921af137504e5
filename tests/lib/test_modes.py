import torch

from oneblock.modes import transformed, values_can_be_read


def test_an_ordinary_run_is_not_transformed_and_its_values_can_be_read():
    assert not transformed() and values_can_be_read(torch.ones(1))


def test_the_transforms_of_torch_func_are_seen_and_only_while_they_run():
    seen = []

    def look(x):
        seen.append((transformed(), values_can_be_read(x)))
        return x * 1

    row = torch.tensor([2.0, 3.0])
    torch.func.jacrev(look)(row)
    torch.func.jacfwd(look)(row)
    torch.func.vmap(look)(row)
    torch.func.grad(lambda x: look(x).sum())(row)
    assert seen == [(True, False)] * 4 and not transformed()


def test_an_exporter_reads_no_values():
    class Asks(torch.nn.Module):
        def forward(self, x):
            return x + 1 if values_can_be_read(x) else x - 1

    one = torch.ones(1)
    assert Asks()(one) == 2 and torch.export.export(Asks(), (one,)).module()(one) == 0


def test_a_tensor_without_data_has_no_values():
    assert not values_can_be_read(torch.ones(1, device="meta"))
