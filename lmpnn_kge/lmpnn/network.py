"""LMPNN: one MLP and two vectors on top of a frozen backbone (Wang et al., ICLR 2023).

    z_n(l) = MLP[ ε z_n(l−1) + Σ_{v ∈ N(n)} ρ(z_v(l−1), r, direction, negated) ]     eq. lgnn-layer

z_n(0) is the entity table's row for a constant and a learned vector for a variable. The state of
the free variable after L layers answers the query.

Three settings go beyond the paper and are off in its configurations. With `residual` a layer adds
its input to the output of the MLP, which starts at 0, so that the network starts as the plain sum
of messages. With `negation: learnt` a negated message is −g ∘ f instead of −f, where g starts at 0.
With `attention` the messages in the sum have learnt weights, which start at 1.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.kernels import take_rows
from lmpnn_kge.lmpnn.attention import Attention
from lmpnn_kge.lmpnn.mlp import Mlp, joined
from lmpnn_kge.lmpnn.wiring import InputNode, Layer, Message, Wiring
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.work.deadline import check_time


class Lmpnn(nn.Module):
    """Turns a batch of queries of one pattern into embeddings in the space of the entities."""

    def __init__(
        self, backbone: Backbone, config: TrainSettings, *, dtype: torch.dtype = torch.float32
    ):
        super().__init__()
        self.backbone = backbone
        self.epsilon = config.epsilon
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            size = backbone.typical_number()
            self.free = nn.Parameter(size * torch.randn(backbone.dim))
            self.bound = nn.Parameter(size * torch.randn(backbone.dim))
            widths = [backbone.dim, *[config.hidden] * config.hidden_layers, backbone.dim]
            self.mlp = Mlp(widths, dtype, residual=config.residual)
            learnt = config.negation == "learnt" and config.messages == "inference"
            self.negation = nn.Parameter(torch.zeros(backbone.dim)) if learnt else None
            self.cat = CatMessages(backbone) if config.messages == "cat" else None
            width = config.attention
            self.attention = Attention(backbone.dim, width) if width else None

    def on(self, device: torch.device, table_memory: str | None = None) -> Lmpnn:
        """This network, moved to a device with its backbone, as `Backbone.placed` explains."""
        self.backbone = self.backbone.placed(device, table_memory)
        return self.to(device)

    def forward(
        self, wiring: Wiring, constants: Tensor, relations: Tensor, rows: Tensor | None = None
    ) -> Tensor:
        """The answer embeddings of queries [n, c] and [n, r] -> [n, d].

        constants are ids of entities, or of these rows [m, d] of the entity table.
        """
        columns = relations.T.contiguous()  # [r, n]
        states = [self._input(term, constants, rows) for term in wiring.inputs]  # z(0), [n, d] each
        for layer in wiring.layers:
            check_time()
            sums, shift = self._own(wiring, layer, states)
            hoisted = self._hoist(layer, states, sums)
            arriving: dict[int, list[Tensor]] = {}  # by target
            for message, rho in self._messages(layer, states, columns, hoisted):
                arriving.setdefault(message.target, []).append(rho)
            for target, messages in arriving.items():
                for rho in messages if self.attention is None else self.attention(messages):
                    sums[target] = sums[target] + rho
            kept = [states[node] for node in layer.kept]
            states = [*self._update(sums, shift, columns, hoisted), *kept]
        return states[0]

    def _input(self, term: InputNode, constants: Tensor, rows: Tensor | None) -> Tensor:
        if isinstance(term, int):
            ids = constants[:, term]
            return self.backbone.rows(ids) if rows is None else take_rows(rows, ids)
        return self._variable(term).expand(len(constants), -1)

    def _variable(self, term: InputNode) -> Tensor:
        return self.free if term == "free" else self.bound

    def _own(
        self, wiring: Wiring, layer: Layer, states: Sequence[Tensor]
    ) -> tuple[list[Tensor], Tensor | None]:
        """ε z_n of each node [n, d], to which messages are added; and a vector for the MLP to add.

        The only node of a network of one layer has the same ε z_n in all queries. As a vector, it
        leaves sums of messages from constants, which need no gradient.
        """
        if len(wiring.layers) > 1:
            return [self.epsilon * states[node] for node in layer.states], None
        (node,) = layer.states
        own = self.epsilon * self._variable(wiring.inputs[node])
        return [torch.zeros_like(own).expand(states[node].shape)], own

    def _hoist(
        self, layer: Layer, states: Sequence[Tensor], sums: list[Tensor]
    ) -> dict[int, Message]:
        """Work out sums that depend on one relation alone per relation: [2R, d] instead of [n, d].

        Queries with the same relation have the same sum and the same MLP of it. If there are fewer
        relations than queries, one row for each relation is less work, above all for the MLP;
        `_update` then gives each query its row. Returns the messages in these sums, by target.
        """
        count = 2 * self.backbone.num_relations
        if self.cat is not None or count >= len(states[0]):
            return {}
        every = torch.arange(count, device=self.free.device)
        for message in layer.hoistable:
            sources = states[message.source][:1].expand(count, -1)
            rho = self.backbone.message(sources, every, inverse=message.inverse)
            sums[message.target] = sums[message.target][:1] + self._signed(rho, message.negated)
        return {message.target: message for message in layer.hoistable}

    def _messages(
        self, layer: Layer, states: Sequence[Tensor], columns: Tensor, hoisted: Container[int]
    ) -> Iterator[tuple[Message, Tensor]]:
        """The messages to all other nodes, each with its ρ, [n, d].

        f is called once for all of them, because a backbone may work relation by relation.
        """
        messages = [message for message in layer.messages if message.target not in hoisted]
        estimates = iter(self._estimates(messages, states, columns))
        for message in messages:
            if message.relation is None:
                yield message, self._signed(states[message.source], message.negated)
            else:  # KGE Cat has taken the negation into account
                yield message, self._signed(next(estimates), message.negated and self.cat is None)

    def _estimates(
        self, messages: Sequence[Message], states: Sequence[Tensor], columns: Tensor
    ) -> Sequence[Tensor]:
        """f, or KGE Cat, of the messages that go over a relation, in their order."""
        over = [message for message in messages if message.relation is not None]
        if not over:
            return ()
        sources = joined([states[message.source] for message in over])
        ids = [columns[message.relation] for message in over]
        if self.cat is not None:
            estimates = self.cat(sources, ids, over)
        else:
            directed = [
                self.backbone.inverse(column) if message.inverse else column
                for message, column in zip(over, ids, strict=True)
            ]
            estimates = self.backbone.message(sources, joined(directed))
        return estimates.split(columns.shape[1])

    def _signed(self, estimates: Tensor, negated: bool) -> Tensor:
        if not negated:
            return estimates
        return -estimates if self.negation is None else -self.negation * estimates

    def _update(
        self,
        sums: list[Tensor],
        shift: Tensor | None,
        columns: Tensor,
        hoisted: Mapping[int, Message],
    ) -> list[Tensor]:
        """MLP(sum) of every node in one call; of a hoisted sum, each query gets its own row."""
        states = list(self.mlp(joined(sums), shift).split([len(total) for total in sums]))
        for node, message in hoisted.items():
            assert message.relation is not None
            states[node] = F.embedding(columns[message.relation], states[node])
        return states


class CatMessages(nn.Module):
    """*KGE Cat*, the paper's baseline without one-hop inference.

    A message is a linear map of [z ‖ relation ‖ direction ‖ negation]. The relation's part of the
    map is computed once per relation, not once per row.
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
        """The messages of states z [m · n, d] over m columns of ids [n] -> [m · n, d]."""
        table = self.relation(self.relations)  # [R, d]
        direction, negation = self.signs
        parts = []
        for column, message in zip(ids, messages, strict=True):
            backwards = (column >= len(table)) != message.inverse
            part = F.embedding(column % len(table), table) + backwards[:, None] * direction
            parts.append(part + negation if message.negated else part)
        return self.state(z) + torch.cat(parts)
