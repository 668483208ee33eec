"""The MLP in bf16 on a CPU is the one that torch's own operations compute."""

import pytest
import torch
import torch.nn.functional as F

from lmpnn_kge.lmpnn.mlp import Mlp


def plain(mlp, x):
    """The same MLP with torch's operations and gradients."""
    *hidden, last = mlp.layers
    y = x.bfloat16()
    for layer in hidden:
        y = F.linear(y, layer.weight.bfloat16(), layer.bias.bfloat16()).relu()
    y = F.linear(y, last.weight.bfloat16(), last.bias.bfloat16()).float()
    return x + y if mlp.residual else y


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("hidden_layers", [1, 2, 3])
def test_bf16_gives_the_bits_and_nearly_the_gradients_of_torch(hidden_layers, residual):
    torch.manual_seed(0)
    mlp = Mlp([6, *[40] * hidden_layers, 6], torch.bfloat16, residual=residual)
    for parameter in mlp.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    mlp.chunk, mlp.block = 4, 9  # the last chunk of a block is smaller, and so is the last block
    weights = torch.randn(11, 6)
    found = []
    for forward in (mlp, lambda x: plain(mlp, x)):
        x = torch.randn(11, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()
        mlp.zero_grad()
        y = forward(x)
        (weights * y).sum().backward()
        found.append([y.detach(), x.grad, *(p.grad for p in mlp.parameters())])
    assert torch.equal(found[0][0], found[1][0])
    for ours, expected in zip(*found, strict=True):
        assert ours.dtype == torch.float32
        assert torch.allclose(ours, expected, rtol=0.02, atol=0.01 * expected.abs().max())


def test_without_gradients_the_bits_are_the_same():
    mlp = Mlp([6, 40, 6], torch.bfloat16, residual=False)
    x = torch.randn(5, 6)
    with torch.inference_mode():
        assert torch.equal(mlp(x), plain(mlp, x))


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float32, 1e-5), (torch.bfloat16, 0.02)], ids=["fp32", "bf16"]
)
def test_a_shift_is_the_same_as_adding_it_to_every_row(dtype, error, residual):
    torch.manual_seed(0)
    mlp = Mlp([6, 40, 6], dtype, residual=residual)
    for parameter in mlp.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, shift, weights = torch.randn(11, 6), torch.randn(6).requires_grad_(), torch.randn(11, 6)
    found = []
    for forward in (lambda: mlp(x, shift), lambda: mlp(x + shift)):
        mlp.zero_grad()
        shift.grad = None
        y = forward()
        (weights * y).sum().backward()
        found.append([y.detach(), shift.grad, *(p.grad for p in mlp.parameters())])
    for ours, expected in zip(*found, strict=True):
        assert torch.allclose(ours, expected, rtol=error, atol=error * expected.abs().max())
