"""LMPNN: one MLP and two vectors on top of a frozen backbone (Wang et al., ICLR 2023).

    z_n(l) = MLP[ ε z_n(l−1) + Σ_{v ∈ N(n)} ρ(z_v(l−1), r, direction, negated) ]     eq. lgnn-layer

A constant begins as its row of the entity table, a variable as a learned vector. What the free
variable has become after L layers answers the query.

Beyond the paper, and off in its configurations: with `residual` a layer adds the MLP to what goes
into it, beginning with the bare sum of messages; with `negation: learnt` a negated message is
−g ∘ f in place of −f, where g begins at 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.lmpnn.wiring import Layer, Message, Wiring
from lmpnn_kge.settings import Config

#: Hidden numbers of the MLP that a CPU works on at once: what its caches hold, and what its
#: allocator reuses instead of asking the system for fresh pages in every step.
CPU_CHUNK = 2**21


class Lmpnn(nn.Module):
    """Turns batches of queries of one pattern into points among the entities."""

    def __init__(self, backbone: Backbone, config: Config, *, dtype: torch.dtype = torch.float32):
        super().__init__()
        self.backbone = backbone
        self.epsilon = config.epsilon
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            size = backbone.entities.float().square().mean().sqrt().item()
            self.free = nn.Parameter(size * torch.randn(backbone.dim))
            self.bound = nn.Parameter(size * torch.randn(backbone.dim))
            widths = [backbone.dim, *[config.hidden] * config.hidden_layers, backbone.dim]
            self.mlp = Mlp(widths, dtype, residual=config.residual)
            learnt = config.negation == "learnt" and config.messages == "inference"
            self.negation = nn.Parameter(torch.zeros(backbone.dim)) if learnt else None
            self.cat = CatMessages(backbone) if config.messages == "cat" else None

    def on(self, device: torch.device) -> Lmpnn:
        """This network, moved to a device with its backbone."""
        self.backbone = self.backbone.to(device)
        return self.to(device)

    def forward(self, wiring: Wiring, constants: Tensor, relations: Tensor) -> Tensor:
        """The answer embeddings of queries [n, c] and [n, r] -> [n, d]."""
        columns = relations.T.contiguous()  # [r, n]
        states = [self._input(kind, constants) for kind in wiring.inputs]
        for layer in wiring.layers:
            totals = [self.epsilon * states[place] for place in layer.states]
            tables = self._tables(layer, states, totals)
            others = [m for m in layer.messages if m.target not in tables]
            for message, told in zip(others, self._tell(states, others, columns), strict=True):
                totals[message.target] = totals[message.target] + told
            kept = [states[place] for place in layer.kept]
            states = list(self.mlp(torch.cat(totals)).split([len(total) for total in totals]))
            for place, message in tables.items():
                assert message.relation is not None
                states[place] = F.embedding(columns[message.relation], states[place])
            states += kept
        return states[0]

    def _input(self, kind: int | str, constants: Tensor) -> Tensor:
        if isinstance(kind, int):
            return self.backbone.entities[constants[:, kind]]
        return (self.free if kind == "free" else self.bound).expand(len(constants), -1)

    def _tables(
        self, layer: Layer, states: Sequence[Tensor], totals: list[Tensor]
    ) -> dict[int, Message]:
        """Sums that depend on one relation alone, worked out for every relation: [2R, d] each.

        That is less than one for each query, unless there are few queries.
        """
        count = 2 * self.backbone.num_relations
        if self.cat is not None or count >= len(states[0]):
            return {}
        alone = {message.target: message for message in layer.alone}
        every = torch.arange(count, device=self.free.device)
        for place, message in alone.items():
            sources = states[message.source][:1].expand(count, -1)
            told = self.backbone.message(sources, every, inverse=message.inverse)
            totals[place] = totals[place][:1] + self._signed(told, message.negated)
        return alone

    def _tell(
        self, states: Sequence[Tensor], messages: Sequence[Message], columns: Tensor
    ) -> Iterator[Tensor]:
        """ρ of every message; f in one call for all, for a backbone may gather by relation."""
        over = [message for message in messages if message.relation is not None]
        told: Iterator[Tensor] = iter(())
        if over:
            sources = torch.cat([states[message.source] for message in over])
            ids = [columns[message.relation] for message in over]
            if self.cat is not None:
                found = self.cat(sources, ids, over)
            else:
                both = [
                    self.backbone.inverse(column) if message.inverse else column
                    for message, column in zip(over, ids, strict=True)
                ]
                found = self.backbone.message(sources, torch.cat(both))
            told = iter(found.split(len(columns[0])))
        for message in messages:
            if message.relation is None:
                yield self._signed(states[message.source], message.negated)
            else:  # KGE Cat has taken the negation into account
                yield self._signed(next(told), message.negated and self.cat is None)

    def _signed(self, told: Tensor, negated: bool) -> Tensor:
        if not negated:
            return told
        return -told if self.negation is None else -self.negation * told


class Mlp(nn.Module):
    """Hidden layers with ReLU, the same for all layers and nodes; computed in dtype.

    A residual one adds its input, and begins as the identity.
    """

    def __init__(self, widths: Sequence[int], dtype: torch.dtype, *, residual: bool):
        super().__init__()
        self.layers = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.chunk = max(1, CPU_CHUNK // max(widths))
        self.dtype, self.residual = dtype, residual
        if residual:
            for parameter in self.layers[-1].parameters():
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        parameters = [parameter.to(self.dtype) for parameter in self.layers.parameters()]
        layers = list(zip(parameters[::2], parameters[1::2], strict=True))
        size = self.chunk if x.device.type == "cpu" else len(x)
        parts = [_perceive(part, layers) for part in x.to(self.dtype).split(size)]
        found = torch.cat(parts).to(x.dtype)
        return x + found if self.residual else found


def _perceive(x: Tensor, layers: list[tuple[Tensor, Tensor]]) -> Tensor:
    *hidden, last = layers
    for weight, bias in hidden:
        x = F.linear(x, weight, bias).relu_()
    return F.linear(x, *last)


class CatMessages(nn.Module):
    """*KGE Cat*, the paper's baseline without one-hop inference.

    A message is a linear map of [z ‖ relation ‖ direction ‖ negation]. The relations' share of it
    is taken once per relation, not per row.
    """

    def __init__(self, backbone: Backbone):
        super().__init__()
        self.relations: Tensor
        relations = backbone.relations[: backbone.num_relations]
        self.register_buffer("relations", relations, persistent=False)
        self.state = nn.Linear(backbone.dim, backbone.dim)
        self.relation = nn.Linear(relations.shape[1], backbone.dim, bias=False)
        self.signs = nn.Parameter(0.01 * torch.randn(2, backbone.dim))  # direction and negation

    def forward(self, z: Tensor, ids: list[Tensor], messages: Sequence[Message]) -> Tensor:
        """z [m · n, d] and m columns of ids [n], one for each message."""
        table = self.relation(self.relations)  # [R, d]
        direction, negation = self.signs
        shares = []
        for column, message in zip(ids, messages, strict=True):
            backwards = (column >= len(table)) != message.inverse
            share = table[column % len(table)] + backwards[:, None] * direction
            shares.append(share + negation if message.negated else share)
        return self.state(z) + torch.cat(shares)
