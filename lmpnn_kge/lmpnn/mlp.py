"""The MLP that all layers and nodes of a network share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Hidden numbers that the MLP works on at once on a CPU: as many as its caches hold, and as the
#: allocator can reuse instead of asking the system for fresh pages in every step.
CPU_CHUNK = 2**21


class Mlp(nn.Module):
    """Hidden layers with ReLU, computed in dtype.

    A residual MLP adds its input and starts as the identity.
    """

    def __init__(self, widths: Sequence[int], dtype: torch.dtype, *, residual: bool):
        super().__init__()
        self.layers = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.chunk = max(1, CPU_CHUNK // max(widths))
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
            arguments = (self.chunk, torch.is_grad_enabled(), x, *parameters)
            y: Tensor = _Bf16Mlp.apply(*arguments)  # type: ignore[no-untyped-call]
        else:
            lower = [parameter.to(self.dtype) for parameter in parameters]
            parts = x.to(self.dtype).split(self.chunk if on_cpu else len(x))
            y = torch.cat([_apply(lower, part) for part in parts])
        if not self.residual:
            return y.to(x.dtype)
        return x + y if shift is None else x + y + shift


def _apply(parameters: Sequence[Tensor], x: Tensor) -> Tensor:
    *hidden, last = zip(parameters[::2], parameters[1::2], strict=True)
    for weight, bias in hidden:
        x = F.linear(x, weight, bias).relu_()
    return F.linear(x, *last)


class _Bf16Mlp(torch.autograd.Function):
    """The same in bf16 on a CPU, where products are fast and torch's other operations are not.

    As 16-bit integers, numbers of bf16 have the same signs, so that an integer ReLU gives the same
    bits. The gradients of the weights are added up in fp32.
    """

    @staticmethod
    def forward(ctx: Any, chunk: int, trains: bool, x: Tensor, *parameters: Tensor) -> Tensor:
        lower = [parameter.to(torch.bfloat16) for parameter in parameters]
        weights, biases = lower[::2], lower[1::2]
        rows = x.to(torch.bfloat16)
        y = rows.new_empty(len(x), len(biases[-1]))
        kept = []  # the inputs of all layers, by chunk
        for part, out in zip(rows.split(chunk), y.split(chunk), strict=True):
            inputs = [part]
            for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
                hidden = torch.addmm(bias, inputs[-1], weight.T)
                hidden.view(torch.int16).relu_()
                inputs.append(hidden)
            torch.addmm(biases[-1], inputs[-1], weights[-1].T, out=out)
            if trains:
                kept += inputs
        ctx.save_for_backward(*weights, *kept)
        ctx.depth, ctx.chunk = len(weights), chunk
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        depth = ctx.depth
        weights, kept = ctx.saved_tensors[:depth], ctx.saved_tensors[depth:]
        totals: dict[int, Tensor] = {}  # by the index of a parameter

        def add(index: int, part: Tensor) -> None:
            wide = part.float()  # before the sum: with two precisions at once, a sum is slower
            totals[index] = totals[index].add_(wide) if index in totals else wide

        lower: list[Tensor] = []
        chunks = list(enumerate(grads[0].split(ctx.chunk)))
        for number, grad in reversed(chunks):  # a CPU still has the last ones in its cache
            inputs = kept[number * depth : (number + 1) * depth]
            for layer in reversed(range(depth)):
                add(2 * layer, grad.T @ inputs[layer])
                add(2 * layer + 1, grad.sum(0))
                if layer or ctx.needs_input_grad[2]:
                    grad = grad @ weights[layer]
                if layer:
                    bits = grad.view(torch.int16)
                    torch.ops.aten.threshold_backward.grad_input(
                        bits, inputs[layer].view(torch.int16), 0, grad_input=bits
                    )
            lower.insert(0, grad)
        parameters = (totals[index] for index in range(2 * depth))
        rows = torch.cat(lower).float() if ctx.needs_input_grad[2] else None
        return None, None, rows, *parameters
