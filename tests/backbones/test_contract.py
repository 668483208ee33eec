"""The contract, over every installed backbone."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge import EQUAL, Backbone, BackboneError, ScoreType, backbone_class
from lmpnn_kge.backbones.discovery import discover

NAMES = [plugin.name for plugin in discover()]
ENTITIES, RELATIONS = 11, 4


def make(name: str, seed: int = 0, **options) -> Backbone:
    """A small random backbone, plain where the model allows it."""
    model = backbone_class(name)
    options.setdefault("reciprocal", model.inverse_formula is None)
    for dim in (8, 9):  # 9 is 1 + 2 · 2², for ConvE
        try:
            return model.random(ENTITIES, RELATIONS, dim, seed=seed, **options)
        except BackboneError:
            continue
    raise AssertionError(f"no small width suits {name}")


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-4, atol=1e-4)


triples = st.lists(
    st.tuples(
        st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)
    ),
    min_size=1,
    max_size=20,
)
every_backbone = pytest.mark.parametrize("name", NAMES)


def test_the_backbones_of_all_of_libkges_models_are_installed():
    assert set(NAMES) >= {"complex", "conve", "cp", "distmult", "relational_tucker3", "rescal"}
    assert set(NAMES) >= {"rotate", "simple", "transe", "transformer", "transh"}


@every_backbone
def test_an_inverse_formula_is_stated_exactly_where_an_inverse_is_defined(name):
    model = backbone_class(name)
    assert (model.inverse_formula is None) == (model.invert is Backbone.invert)


@every_backbone
@given(triples=triples, seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_score_from_the_head_equals_score_from_the_tail(name, triples, seed):
    backbone = make(name, seed)
    if backbone.reciprocal:
        return  # the trained inverse is another function by design
    s, p, o = torch.tensor(triples).T
    h, t = backbone.entities[s], backbone.entities[o]
    forward = backbone.score(h, p, t)
    assert close(forward, backbone.score(t, backbone.inverse(p), h))
    assert close(forward, backbone.score_tails(s, p)[torch.arange(len(o)), o])
    assert close(forward, backbone.score_heads(p, o)[torch.arange(len(s)), s])


@every_backbone
@given(triples=triples, seed=st.integers(0, 1000), reciprocal=st.booleans())
@settings(max_examples=15, deadline=None)
def test_all_ways_to_score_agree(name, triples, seed, reciprocal):
    reciprocal |= backbone_class(name).inverse_formula is None
    backbone = make(name, seed, reciprocal=reciprocal)
    s, p, o = torch.tensor(triples).T
    for relations in (p, backbone.inverse(p)):
        estimates = backbone.message(backbone.entities[s], relations)
        scores = backbone.score_tails(s, relations)  # [n, E]
        assert close(backbone.score_entities(estimates, relations), scores)
        if backbone.score_type is ScoreType.DISTANCE:
            distances = backbone.distances(estimates, backbone.entities, relations)
            assert torch.allclose(-distances, scores, rtol=1e-3, atol=1e-2)
        one = scores[torch.arange(len(o)), o]
        tails = backbone.entities[o]
        assert close(backbone.score(backbone.entities[s], relations, tails), one)
        assert close(backbone.score_pairs(estimates, tails, relations), one)


@every_backbone
def test_scores_of_embeddings_have_their_gradients(name):
    backbone = make(name).to(dtype=torch.float64)
    points = torch.randn(
        2, 3, backbone.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    relations = torch.tensor([0, RELATIONS + 1, 2])
    assert torch.autograd.gradcheck(
        lambda heads, tails: backbone.score(heads, relations, tails),
        [rows.clone().requires_grad_() for rows in points],
    )


@every_backbone
@given(triples=triples, seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_messages_have_the_entity_width_and_negation_is_the_sign(name, triples, seed):
    backbone = make(name, seed)
    s, p, _ = torch.tensor(triples).T
    z = backbone.entities[s]
    for inverse in (False, True):
        message = backbone.message(z, p, inverse=inverse)
        assert message.shape == z.shape
        assert torch.equal(backbone.message(z, p, inverse=inverse, negated=True), -message)
    assert torch.equal(
        backbone.message(z, p, inverse=True), backbone.forward(z, p + backbone.num_relations)
    )


@every_backbone
@given(triples=triples, seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_a_message_does_not_depend_on_the_rest_of_the_batch(name, triples, seed):
    backbone = make(name, seed)
    s, p, _ = torch.tensor(triples).T
    z = backbone.entities[s]
    together = backbone.message(z, p)
    alone = torch.cat([backbone.message(z[i : i + 1], p[i : i + 1]) for i in range(len(p))])
    assert close(together, alone)
    assert close(backbone.message(z.flip(0), p.flip(0)), together.flip(0))
    scores = backbone.score_tails(s, p)
    assert close(
        scores, torch.cat([backbone.score_tails(s[i:][:1], p[i:][:1]) for i in range(len(p))])
    )


@every_backbone
def test_no_gradient_reaches_the_backbone_but_one_reaches_the_state(name):
    made = make(name)
    trainable = {k: t.clone().requires_grad_() for k, t in made.tensors().items()}
    backbone = dataclasses.replace(made, **trainable)
    z = torch.randn(6, backbone.dim, requires_grad=True)
    relations = backbone.inverse([0, 1, 2, 3, 0, 1])
    backbone.score_entities(backbone.message(z, relations), relations).sum().backward()
    assert z.grad is not None
    assert z.grad.abs().sum() > 0
    assert all(tensor.grad is None for tensor in trainable.values())
    assert not any(tensor.requires_grad for tensor in backbone.tensors().values())


@every_backbone
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes_give_the_same_scores_within_their_precision(name, dtype):
    backbone = make(name)
    s, p = torch.arange(8), torch.arange(8) % RELATIONS
    converted = backbone.to(dtype=dtype).score_tails(s, p)
    assert converted.dtype == dtype
    tolerance = 1e-4 if dtype == torch.float64 else 0.3
    assert torch.allclose(
        converted.float(), backbone.score_tails(s, p), rtol=tolerance, atol=tolerance
    )


@every_backbone
def test_messages_and_scores_need_no_data_to_know_their_shapes(name):
    backbone = make(name).to("meta")
    z = torch.empty(7, backbone.dim, device="meta", requires_grad=True)
    relations = torch.empty(7, dtype=torch.int64, device="meta")
    message = backbone.message(z, relations, inverse=True, negated=True)
    message.sum().backward()
    assert message.shape == z.shape == z.grad.shape
    assert backbone.score_entities(message).shape == (7, ENTITIES)
    assert backbone.score(z, relations, z).shape == (7,)


@every_backbone
def test_equality_sends_the_state_itself(name):
    backbone = make(name)
    z = torch.randn(3, backbone.dim)
    assert torch.equal(backbone.message(z, EQUAL), z)
    assert torch.equal(backbone.message(z, EQUAL, inverse=True, negated=True), -z)
    if backbone.score_type is ScoreType.DISTANCE:
        assert torch.equal(backbone.score(z, EQUAL, z), torch.zeros(3))


@every_backbone
def test_one_relation_for_all_rows_is_the_same_as_one_for_each(name):
    backbone = make(name)
    z = torch.randn(3, backbone.dim)
    each = backbone.message(z, [2, 2, 2], inverse=True)
    for one in (2, [2], torch.tensor(2)):
        assert torch.equal(backbone.message(z, one, inverse=True), each)


def test_a_relation_that_is_a_name_is_refused():
    with pytest.raises(TypeError):
        make("distmult").message(torch.zeros(1, 8), "borders")


@every_backbone
def test_a_backbone_first_used_in_evaluation_can_serve_in_training(name):
    backbone = make(name)
    with torch.inference_mode():
        backbone.message(torch.randn(2, backbone.dim), [0, 1])
    z = torch.randn(2, backbone.dim, requires_grad=True)
    backbone.message(z, [0, 1]).sum().backward()
    assert z.grad is not None


@every_backbone
def test_other_tensors_give_the_scores_of_another_backbone(name):
    """Nothing that was worked out from the tensors before may stay."""
    one, other = make(name), make(name, seed=1)
    one.score_tails([0, 1], [2, 3])
    exchanged = one.with_tensors(other.tensors())
    assert torch.equal(exchanged.score_tails([0, 1], [2, 3]), other.score_tails([0, 1], [2, 3]))


@every_backbone
def test_gradients_reach_every_tensor_in_training(name):
    made = make(name, reciprocal=True)
    trained = {key: tensor.clone().requires_grad_() for key, tensor in made.tensors().items()}
    backbone = made.with_tensors(trained)
    ids = torch.arange(2 * RELATIONS)
    rows = torch.arange(2 * RELATIONS) % ENTITIES
    scores = backbone.score(backbone.entities[rows], ids, backbone.entities[rows.flip(0)])
    scores.square().sum().backward()
    for key, tensor in trained.items():
        assert tensor.grad is not None, key
        assert tensor.grad.abs().sum() > 0, key


@every_backbone
def test_no_questions_have_no_scores(name):
    assert make(name).score_tails([], []).shape == (0, ENTITIES)


def test_inverse_is_an_involution():
    backbone = make("transe")
    ids = torch.arange(2 * RELATIONS)
    assert torch.equal(backbone.inverse(backbone.inverse(ids)), ids)
    assert backbone.inverse([0, RELATIONS]).tolist() == [RELATIONS, 0]


def test_truth_is_the_sigmoid_of_the_scaled_and_shifted_score():
    scores = torch.tensor([-2.0, 0.0, 3.0])
    assert torch.equal(Backbone.truth(scores), scores.sigmoid())
    assert torch.equal(Backbone.truth(scores, scale=2.0, shift=-1.0), (2 * scores - 1).sigmoid())


def test_a_trained_inverse_is_used_instead_of_the_formula():
    backbone = backbone_class("transe").random(ENTITIES, RELATIONS, 8, reciprocal=True)
    z = backbone.entities[:1]
    message = backbone.message(z, [2], inverse=True)
    assert torch.equal(message, z + backbone.relations[2 + RELATIONS])


@pytest.mark.parametrize(
    ("name", "entities", "relations", "reciprocal", "words"),
    [
        ("distmult", (5, 4), (3, 6), False, "width 4, not 6"),
        ("rescal", (5, 4), (3, 8), False, "width 16, not 8"),
        ("complex", (5, 3), (3, 3), False, "even"),
        ("cp", (5, 3), (3, 1), False, "even"),
        ("cp", (5, 4), (3, 4), False, "width 2, not 4"),
        ("simple", (5, 3), (3, 3), False, "even"),
        ("transh", (5, 4), (3, 4), False, "width 8, not 4"),
        ("rotate", (5, 4), (3, 4), False, "width 2, not 4"),
        ("transe", (5, 4), (3, 4), True, "pairs"),
        ("transe", (0, 4), (3, 4), False, "at least one row"),
        ("transe", (5, 4), (0, 4), False, "at least one row"),
        ("transe", (5,), (3,), False, "matrices"),
    ],
)
def test_tables_that_do_not_fit_are_refused(name, entities, relations, reciprocal, words):
    with pytest.raises(BackboneError, match=words):
        backbone_class(name).from_tensors(
            torch.randn(entities), torch.randn(relations), reciprocal=reciprocal
        )


def test_a_backbone_is_shown_in_one_line_without_its_tensors():
    rotate = backbone_class("rotate").random(14541, 237, 8, reciprocal=True, p=1.5)
    expected = "14,541 entities, 237 relations, width 8, reciprocal, distance, p=1.5"
    assert repr(rotate) == f"RotatE({expected})"


@every_backbone
def test_no_repr_prints_a_tensor_or_a_second_line(name):
    shown = repr(make(name))
    assert shown.startswith(f"{backbone_class(name).__name__}(11 entities, 4 relations, width ")
    assert "tensor" not in shown
    assert "\n" not in shown


def test_a_backbone_may_define_its_own_repr():
    class Mine(backbone_class("transe")):
        def __repr__(self):
            return "mine"

    @dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
    class Derived(Mine):
        scale: float = 1.0

    assert repr(Mine.random(3, 2, 4)) == repr(Derived.random(3, 2, 4)) == "mine"


def test_ids_must_be_as_many_as_rows():
    with pytest.raises(BackboneError, match="2 entity ids do not match 11 entity rows"):
        backbone_class("distmult").random(11, 4, 8, entity_ids=["a", "b"])


@pytest.mark.parametrize(
    "made", [lambda t: t.numpy(), lambda t: t.tolist(), torch.Tensor.to_sparse]
)
def test_tables_that_are_no_dense_tensors_are_refused(made):
    with pytest.raises(BackboneError, match="dense tensors of torch"):
        backbone_class("distmult").from_tensors(
            made(torch.ones(3, 2)), torch.ones(1, 2), reciprocal=False
        )


@pytest.mark.parametrize("sizes", [(0, 1, 4), (1, 0, 4), (1, 1, 0), (1, 1, -1)])
@pytest.mark.parametrize("name", ["distmult", "conve"])
def test_a_random_backbone_has_at_least_one_of_everything(name, sizes):
    with pytest.raises(BackboneError, match="at least one entity"):
        backbone_class(name).random(*sizes, reciprocal=True)
