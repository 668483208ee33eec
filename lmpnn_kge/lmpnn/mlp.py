"""The MLP that all layers and nodes of a network share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Hidden numbers that the MLP works on at once on a CPU: as many as its caches hold, and as the
#: allocator can reuse instead of asking the system for fresh pages in every step.
CPU_CHUNK = 2**21

#: Those that one tensor in bf16 holds: as many as `cli/allocator.py` lets the allocator reuse.
CPU_BLOCK = 2**24


class Mlp(nn.Module):
    """Hidden layers with ReLU, computed in dtype.

    A residual MLP adds its input and starts as the identity.
    """

    def __init__(self, widths: Sequence[int], dtype: torch.dtype, *, residual: bool):
        super().__init__()
        self.layers = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.chunk, self.block = (max(1, size // max(widths)) for size in (CPU_CHUNK, CPU_BLOCK))
        self.dtype, self.residual = dtype, residual
        if residual:
            for parameter in self.layers[-1].parameters():
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor, shift: Tensor | None = None) -> Tensor:
        """The MLP of rows x [n, d], to each of which a vector is added: the shift [d].

        It goes into the first bias: if only the shift is learnt, rows need no gradient.
        """
        parameters: list[Tensor] = list(self.layers.parameters())
        if shift is not None:
            parameters[1] = torch.addmv(parameters[1], parameters[0], shift)
        on_cpu = x.device.type == "cpu" and not torch.compiler.is_compiling()
        if on_cpu and self.dtype == torch.bfloat16:
            apply: Callable[..., Tensor] = _Bf16Mlp.apply
            blocks = [apply(rows, self.chunk, *parameters) for rows in x.split(self.block)]
            y = joined(blocks)
        else:
            lower = [parameter.to(self.dtype) for parameter in parameters]
            parts = x.to(self.dtype).split(self.chunk if on_cpu else len(x))
            y = joined([_apply(lower, part) for part in parts])
        if not self.residual:
            return y.to(x.dtype)
        return x + y if shift is None else x + y + shift


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """torch.cat, which would copy a single tensor as well."""
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))


def _apply(parameters: Sequence[Tensor], x: Tensor) -> Tensor:
    *hidden, last = zip(parameters[::2], parameters[1::2], strict=True)
    for weight, bias in hidden:
        x = F.linear(x, weight, bias).relu_()
    return F.linear(x, *last)


class _Bf16Mlp(torch.autograd.Function):
    """The same in bf16 on a CPU, where products are fast and torch's other operations are not.

    As 16-bit integers, numbers of bf16 have the same signs, so that an integer ReLU gives the same
    bits. What goes from layer to layer is computed chunk by chunk, within the caches; the gradient
    of a weight is one product over all rows, because a sum over chunks takes more passes.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, chunk: int, *parameters: Tensor) -> Tensor:
        lower = [parameter.to(torch.bfloat16) for parameter in parameters]
        weights, biases = lower[::2], lower[1::2]
        inputs = [x.to(torch.bfloat16)]  # of all layers; what comes last is the output
        inputs += [inputs[0].new_empty(len(x), len(bias)) for bias in biases]
        for parts in zip(*(rows.split(chunk) for rows in inputs), strict=True):
            for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
                torch.addmm(bias, parts[layer], weight.T, out=parts[layer + 1])
                if layer + 1 < len(weights):
                    parts[layer + 1].view(torch.int16).relu_()
        ctx.save_for_backward(*weights, *inputs[:-1])
        ctx.depth, ctx.chunk = len(weights), chunk
        return inputs[-1]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        depth = ctx.depth
        weights, inputs = ctx.saved_tensors[:depth], ctx.saved_tensors[depth:]
        slopes = [*map(torch.empty_like, inputs), grads[0]]  # gradients of inputs and of the output
        biases = [torch.zeros(len(weight)) for weight in weights]
        chunks = zip(*(rows.split(ctx.chunk) for rows in (*slopes, *inputs)), strict=True)
        for parts in reversed(list(chunks)):  # a CPU still has the last ones in its cache
            for layer in reversed(range(depth)):
                biases[layer] += parts[layer + 1].sum(0)
                if layer or ctx.needs_input_grad[0]:
                    torch.mm(parts[layer + 1], weights[layer], out=parts[layer])
                if layer:
                    bits, below = (part.view(torch.int16) for part in parts[layer :: depth + 1])
                    torch.ops.aten.threshold_backward.grad_input(bits, below, 0, grad_input=bits)
        parameters: list[Tensor] = []
        for rows, slope, bias in zip(inputs, slopes[1:], biases, strict=True):
            parameters += (slope.T @ rows).float(), bias
        return slopes[0].float() if ctx.needs_input_grad[0] else None, None, *parameters
