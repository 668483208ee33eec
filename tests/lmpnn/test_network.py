"""LMPNN against the paper's layer, written down a second time for one query and all its nodes."""

from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lmpnn_kge import EQUAL, backbone_class
from lmpnn_kge.errors import QueryError
from lmpnn_kge.lmpnn import mlp
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.query.formula import Constant
from lmpnn_kge.query.graph import query_graphs
from lmpnn_kge.query.patterns import Pattern, parse_pattern
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.lmpnn import LmpnnTask
from lmpnn_kge.training.loop import Loop

from .. import made_up
from ..backbones.test_contract import ENTITIES, NAMES, RELATIONS, make
from ..formulas import formulas

PATTERNS = made_up.patterns("2f-ep", "2f-cn")
UNIONS = ("2u", "up")
QUERIES = 2

every_backbone = pytest.mark.parametrize("name", NAMES)
both_kinds_of_messages = pytest.mark.parametrize("messages", ["inference", "cat"])


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """So small are the products here that a second thread is only waited for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def config(**changes):
    small = {"hidden": 12, "epsilon": 0.3, "batch_size": 8, "negative_count": 5, "warmup": 0}
    return load_config(settings={**small, **changes})


def precise(name: str, **changes) -> Lmpnn:
    """A random network in float64, in which rounding hides no mistake, nor zeros at the start."""
    backbone = make(name).to(dtype=torch.float64)
    model = Lmpnn(backbone, config(**changes), dtype=torch.float64).double()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def columns(pattern: Pattern, count: int = QUERIES, seed: int = 0) -> tuple:
    drawn = made_up.queries(pattern, count, ENTITIES, RELATIONS, seed)
    return torch.from_numpy(drawn.constants).long(), torch.from_numpy(drawn.relations).long()


# The paper's layer once more ----------------------------------------------------------------


def plain_mlp(model, x):
    given = x if model.mlp.residual else 0
    *hidden, last = model.mlp.layers
    for layer in hidden:
        x = torch.clamp(layer.weight @ x + layer.bias, min=0)
    return given + last.weight @ x + last.bias


def plain_message(model, z, relation, inverse, negated):
    if model.cat is None or relation == EQUAL:
        weight = 1 if model.negation is None or not negated else model.negation
        message = model.backbone.message(z[None], relation, inverse=inverse, negated=negated)
        return weight * message[0]
    half, cat = model.backbone.num_relations, model.cat
    backwards = inverse != (relation >= half)
    row = model.backbone.relations[relation % half]
    message = torch.cat([z, row, z.new_tensor([backwards, negated])])
    weight = torch.cat([cat.state.weight, cat.relation.weight, cat.signs.T], dim=1)
    return weight @ message + cat.state.bias


def plain_weights(model, messages):
    """The weights of the messages to a node: k · softmax of their scores."""
    if model.attention is None:
        return torch.ones(len(messages))
    hidden, score = model.attention.hidden, model.attention.score
    features = [torch.clamp(hidden.weight @ message + hidden.bias, min=0) for message in messages]
    powers = torch.stack([(score.weight @ feature).exp() for feature in features])
    return len(messages) * powers / powers.sum()


def plain_depth(graph) -> int:
    """From the farthest free variable to its farthest constant."""
    return max(plain_distance(graph, variable) for variable in range(graph.free))


def plain_distance(graph, variable) -> int:
    """From a variable to the farthest constant, by walking until nothing new is found."""
    distance = {variable: 0}
    for step in range(len(graph.nodes)):
        for edge in graph.edges:
            for a, b in ((edge.head, edge.tail), (edge.tail, edge.head)):
                if distance.get(a) == step:
                    distance.setdefault(b, step + 1)
    message = [
        distance[b] + 1
        for edge in graph.edges
        for a, b in ((edge.head, edge.tail), (edge.tail, edge.head))
        if isinstance(graph.nodes[a], Constant)
    ]
    return max(message or distance.values())


def plain_answer(model, graph, pattern, constants, relations, shift, kind):
    """z_y(L) of one query: every node in every layer, a message at a time."""
    state = []
    for term in graph.nodes:
        if isinstance(term, Constant):
            state.append(model.backbone.entities[constants[pattern.constants.index(term.name)]])
        else:
            state.append(model.free if term.is_free else model.bound)
    for _ in range(max(1, plain_depth(graph) + shift)):
        messages = [[] for _ in state]
        for edge in graph.edges:
            if edge.relation is None:
                relation = EQUAL
            else:
                relation = relations[pattern.relations.index(edge.relation)]
            for source, target, inverse in (
                (edge.head, edge.tail, False),
                (edge.tail, edge.head, True),
            ):
                message = plain_message(model, state[source], relation, inverse, edge.negated)
                messages[target].append(message)
        total = [model.epsilon * z for z in state]
        for target, arrived in enumerate(messages):
            for weight, message in zip(plain_weights(model, arrived), arrived, strict=True):
                total[target] = total[target] + weight * message
        state = [
            z if kind == "kept" and isinstance(term, Constant) else plain_mlp(model, x)
            for term, z, x in zip(graph.nodes, state, total, strict=True)
        ]
    return state[0]


@torch.no_grad()
def check(model, pattern, union, shift, seed=0, kind="updated"):
    constants, relations = columns(pattern, seed=seed)
    graphs = query_graphs(pattern.formula, merge=union == "merge", focus=pattern.focus)
    for wiring, graph in zip(wire(pattern, union, shift, kind), graphs, strict=True):
        found = model(wiring, constants, relations)
        expected = [
            plain_answer(model, graph, pattern, cs, rs, shift, kind)
            for cs, rs in zip(constants.tolist(), relations.tolist(), strict=True)
        ]
        assert torch.allclose(found, torch.stack(expected), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("shift", [-1, 0, 1, 2])
@every_backbone
def test_leaving_out_what_never_reaches_the_answer_changes_no_answer(name, shift):
    model = precise(name)
    for pattern in PATTERNS.values():
        check(model, pattern, "dnf", shift)
    for union in UNIONS:
        check(model, PATTERNS[union], "merge", shift)


@pytest.mark.parametrize("attention", [0, 3])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("negation", ["full", "learnt"])
def test_what_is_beyond_the_paper_is_what_it_says(negation, residual, attention):
    model = precise("complex", negation=negation, residual=residual, attention=attention)
    for pattern in PATTERNS.values():
        check(model, pattern, "dnf", 0)


def test_a_network_beyond_the_paper_begins_with_the_sum_of_positive_messages():
    backbone = make("complex")
    model = Lmpnn(backbone, config(negation="learnt", residual=True, epsilon=0.0))
    constants, relations = columns(PATTERNS["2in"])
    (wiring,) = wire(PATTERNS["2in"])
    expected = backbone.message(backbone.entities[constants[:, 0]], relations[:, 0])
    torch.testing.assert_close(model(wiring, constants, relations), expected)


@both_kinds_of_messages
def test_attention_begins_with_the_sum_of_messages(messages):
    plain, weighing = (
        Lmpnn(make("complex"), config(messages=messages, attention=width)) for width in (0, 3)
    )
    for pattern in PATTERNS.values():
        for wiring in wire(pattern):
            given = wiring, *columns(pattern)
            torch.testing.assert_close(weighing(*given), plain(*given))


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_constants_can_keep_their_embedding(shift):
    model = precise("complex")
    for pattern in PATTERNS.values():
        check(model, pattern, "dnf", shift, kind="kept")


def mlp_rows(wiring) -> int:
    """How often the MLP is applied for one query."""
    return sum(len(layer.states) for layer in wiring.layers)


def test_a_kept_constant_costs_nothing():
    (updated,), (kept,) = (wire(PATTERNS["pi"], constants=kind) for kind in ("updated", "kept"))
    assert (mlp_rows(updated), mlp_rows(kept)) == (4, 3)


@pytest.mark.parametrize("name", sorted({*PATTERNS} - {*UNIONS}))
def test_both_unions_wire_a_pattern_without_one_alike(name):
    assert wire(PATTERNS[name], "merge") == wire(PATTERNS[name], "dnf")


entity_names, relation_names = st.sampled_from(["a", "b"]), st.sampled_from(["r", "s", "="])


@given(
    formula=formulas(entity_names, relation_names),
    union=st.sampled_from(["dnf", "merge"]),
    shift=st.integers(-1, 2),
    name=st.sampled_from(NAMES),
    messages=st.sampled_from(["inference", "cat"]),
    attention=st.sampled_from([0, 3]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_any_query_graph_is_answered_as_the_layer_says(
    formula, union, shift, name, messages, attention, seed
):
    try:
        query_graphs(formula, merge=union == "merge")
    except QueryError:
        assume(False)
    model = precise(name, messages=messages, attention=attention)
    check(model, Pattern(formula), union, shift, seed)


def test_two_layers_by_hand():
    """TransE: r1(?, ?x) and not r2(?x, s), where ε = 0.5."""
    backbone = backbone_class("transe").from_tensors(
        torch.tensor([[1.0, 2.0]]),  # s
        torch.tensor([[1.0, 0.0], [0.0, 3.0]]),  # r1 and r2
        reciprocal=False,
    )
    model = Lmpnn(backbone, config(epsilon=0.5, hidden=2, negation="full", residual=False))
    weights = {
        "free": [1.0, 1.0],
        "bound": [2.0, -1.0],
        "mlp.layers.0.weight": [[1.0, 0.0], [1.0, 1.0]],
        "mlp.layers.0.bias": [0.0, -2.0],
        "mlp.layers.1.weight": [[1.0, -1.0], [0.0, 2.0]],
        "mlp.layers.1.bias": [0.5, 0.0],
    }
    model.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
    # Layer 1, ?:   its own state       0.5 · (1, 1)             = (0.5, 0.5)
    #               ?x from tail to head (2, −1) − (1, 0)        = (1, −1)      sum (1.5, −0.5)
    #               MLP: hidden (1.5, 1.5 − 0.5 − 2) → (1.5, 0); (1.5 − 0 + 0.5, 0)    = (2, 0)
    # Layer 1, ?x:  its own state       0.5 · (2, −1)            = (1, −0.5)
    #               ? from head to tail  (1, 1) + (1, 0)         = (2, 1)
    #               s, tail to head, not −((1, 2) − (0, 3))      = (−1, 1)      sum (2, 1.5)
    #               MLP: hidden (2, 2 + 1.5 − 2) = (2, 1.5); (2 − 1.5 + 0.5, 3)        = (1, 3)
    # Layer 2, ?:   its own state       0.5 · (2, 0)             = (1, 0)
    #               ?x from tail to head (1, 3) − (1, 0)         = (0, 3)       sum (1, 3)
    #               MLP: hidden (1, 1 + 3 − 2) = (1, 2); (1 − 2 + 0.5, 4)              = (−0.5, 4)
    pattern = parse_pattern("r1(f,e1)&!r2(e1,s1)")
    (wiring,) = wire(pattern)
    answer = model(wiring, torch.tensor([[0]]), torch.tensor([[0, 1]]))
    assert answer.tolist() == [[-0.5, 4.0]]
    # The same question, asked with the inverses of both relations.
    (wiring,) = wire(parse_pattern("r1(e1,f)&!r2(s1,e1)"))
    assert model(wiring, torch.tensor([[0]]), torch.tensor([[2, 3]])).tolist() == [[-0.5, 4.0]]


@pytest.mark.parametrize(
    ("name", "rows"),
    [("1p", 1), ("2p", 3), ("3p", 6), ("2i", 1), ("3i", 1), ("pi", 4), ("ip", 3), ("pni", 4)],
)
def test_the_mlp_sees_only_what_is_needed(name, rows):
    (wiring,) = wire(PATTERNS[name])
    assert mlp_rows(wiring) == rows
    assert [len(layer.states) for layer in wiring.layers][-1] == 1


def test_a_disjunction_is_wired_part_by_part_or_as_one():
    assert [mlp_rows(wiring) for wiring in wire(PATTERNS["up"])] == [3, 3]
    assert [mlp_rows(wiring) for wiring in wire(PATTERNS["up"], "merge")] == [3]


def test_there_is_always_a_layer():
    (wiring,) = wire(PATTERNS["1p"], "dnf", -5)
    assert len(wiring.layers) == 1


# KGE Cat ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["pni", "3cm", "coauthor"])
@every_backbone
def test_cat_is_a_linear_map_of_state_relation_direction_and_negation(name, pattern):
    check(precise(name, messages="cat"), PATTERNS[pattern], "dnf", 0)


@both_kinds_of_messages
def test_unequal_is_not_equal(messages):
    model = precise("distmult", messages=messages)
    same, other = (wire(parse_pattern(f"r1(s1,f)&f{sign}s2"))[0] for sign in ("=", "!="))
    constants, relations = torch.tensor([[0, 1]]), torch.tensor([[0]])
    assert not torch.allclose(model(same, constants, relations), model(other, constants, relations))


# The MLP ------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden_layers", [1, 2, 3])
def test_working_in_chunks_changes_nothing(monkeypatch, hidden_layers):
    settings = config(hidden_layers=hidden_layers)
    whole = Lmpnn(make("distmult"), settings)
    monkeypatch.setattr(mlp, "CPU_CHUNK", 3 * settings.hidden)  # three rows
    parts = Lmpnn(make("distmult"), settings)
    assert parts.mlp.chunk == 3
    (wiring,), (constants, relations) = wire(PATTERNS["pin"]), columns(PATTERNS["pin"], 7)
    found = [model(wiring, constants, relations) for model in (whole, parts)]
    assert torch.allclose(*found, rtol=1e-5, atol=1e-6)
    for answer in found:
        answer.square().sum().backward()
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hidden_layers", [2, 3])
def test_several_hidden_layers_are_several(hidden_layers):
    model = precise("rotate", hidden_layers=hidden_layers)
    assert len(model.mlp.layers) == hidden_layers + 1
    check(model, PATTERNS["pin"], "dnf", 0)


def test_bf16_is_close_to_fp32():
    backbone, (wiring,) = make("complex"), wire(PATTERNS["pi"])
    constants, relations = columns(PATTERNS["pi"], 50)
    fine, coarse = (
        Lmpnn(backbone, config(residual=False), dtype=dtype)(wiring, constants, relations)
        for dtype in (torch.float32, torch.bfloat16)
    )
    assert coarse.dtype == torch.float32
    assert not torch.equal(fine, coarse)
    assert torch.cosine_similarity(fine, coarse).min() > 0.99


# A training step ----------------------------------------------------------------------------


def loop_for(name: str, device: str = "cpu", pattern: str = "up", **changes) -> Loop:
    model = Lmpnn(make(name), config(**changes)).on(torch.device(device))
    train = {pattern: made_up.queries(PATTERNS[pattern], 8, ENTITIES, RELATIONS)}
    task = LmpnnTask(model, config(**changes), train, {}, torch.float32)
    return Loop(task, RunFolder(Path("nowhere"), config(**changes), None))


class Devices(TorchDispatchMode):
    """Notes where tensors come to be."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.seen.add(leaf.device.type)
        return result


@pytest.mark.parametrize("attention", [0, 3])
@pytest.mark.parametrize("negatives", ["independent", "shared", "all"])
@both_kinds_of_messages
@every_backbone
def test_a_step_waits_for_nothing_and_needs_no_data_for_its_shapes(
    name, messages, negatives, attention, monkeypatch
):
    """Meta tensors have no data: whatever looks at a value raises."""
    changes = {"messages": messages, "negatives": negatives, "attention": attention}
    loop = loop_for(name, "meta", **changes)
    (batch,) = loop.task.input.epoch(0)
    with Devices() as devices, monkeypatch.context() as patch:
        # The optimiser counts its steps on the host; all else is made where the network is.
        patch.setattr(loop.task.optimiser, "step", lambda: None)
        loss = loop.step([part.to(torch.device("meta")) for part in batch])
    assert loss.shape == ()
    assert devices.seen == {"meta"}
    loop.task.optimiser.step()


@pytest.mark.parametrize("pattern", ["1p", "up", "3cm", "coauthor"])
@both_kinds_of_messages
@every_backbone
def test_gradients_reach_the_network_and_nothing_else(name, messages, pattern):
    loop = loop_for(name, pattern=pattern, messages=messages)
    backbone, model = loop.task.model.backbone, loop.task.model
    before = {key: tensor.clone() for key, tensor in backbone.tensors().items()}
    (batch,) = loop.task.input.epoch(0)
    assert loop.step(batch).isfinite()
    learned = {key for key, value in model.named_parameters() if value.grad is not None}
    layers = {f"mlp.layers.{n}.{part}" for n in (0, 1) for part in ("weight", "bias")}
    cat = {"cat.state.weight", "cat.state.bias", "cat.relation.weight", "cat.signs"}
    everything = {"free", "bound"} | layers | (cat if messages == "cat" else {"negation"})
    assert {key for key, _ in model.named_parameters()} == everything
    assert model.state_dict().keys() == everything
    unused = {"1p": {"bound", "negation"}, "coauthor": set()}.get(pattern, {"negation"})
    assert learned == everything - unused
    assert all(dict(model.named_parameters())[key].grad.isfinite().all() for key in learned)
    for key, tensor in backbone.tensors().items():
        assert not tensor.requires_grad
        assert tensor.grad is None
        assert torch.equal(tensor, before[key])


@pytest.mark.parametrize("pattern", ["1p", "2p", "2i"])
def test_attention_learns_from_nodes_with_several_messages(pattern):
    loop = loop_for("complex", pattern=pattern, attention=3)
    (batch,) = loop.task.input.epoch(0)
    loop.step(batch)
    attention = loop.task.model.attention
    assert (attention.score.weight.grad is None) == (pattern == "1p")
    assert bool(attention.score.weight.any()) == (pattern != "1p")


def test_steps_on_one_batch_bring_the_loss_down():
    loop = loop_for("complex", learning_rate=0.01)
    (batch,) = loop.task.input.epoch(0)
    losses = [loop.step(batch).item() for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]


def test_the_seed_decides_the_network_and_leaves_the_random_numbers_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    one, same, other = (Lmpnn(make("transe"), config(seed=seed)) for seed in (3, 3, 4))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(one.free, same.free)
    assert not torch.equal(one.free, other.free)


@every_backbone
@pytest.mark.parametrize("attention", [0, 3])
@pytest.mark.parametrize("pattern", ["2p", "3p", "ip", "inp", "2il", "pin"])
def test_an_answer_is_the_same_for_one_query_and_for_many(name, pattern, attention):
    model, found = precise(name, attention=attention), PATTERNS[pattern]
    constants, relations = columns(found, count=4 * RELATIONS)  # more queries than relations
    (wiring,) = wire(found)
    together = model(wiring, constants, relations)
    alone = [
        model(wiring, *one) for one in zip(constants.split(1), relations.split(1), strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(alone))
