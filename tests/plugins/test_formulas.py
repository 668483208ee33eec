"""Each built-in backbone against its formula, written out by hand on small numbers."""

import pytest
import torch

from lmpnn_kge import BackboneError, backbone_class


def backbone(name, entities, relations, **fields):
    return backbone_class(name).from_tensors(
        torch.tensor(entities), torch.tensor(relations), reciprocal=False, **fields
    )


def test_distmult_weighs_coordinates():
    model = backbone("distmult", [[1.0, 2.0], [3.0, 5.0]], [[2.0, -1.0]])
    assert model.message(model.entities, [0, 0]).tolist() == [[2, -2], [6, -5]]
    assert model.score_tails([0], [0]).tolist() == [[2 - 4, 6 - 10]]


def test_complex_head_message_uses_the_conjugate():
    # h = 1 + 2i, r = 3 + 4i: h r = -5 + 10i and h r̄ = 11 + 2i
    model = backbone("complex", [[1.0, 2.0]], [[3.0, 4.0]])
    assert model.message(model.entities, [0]).tolist() == [[-5, 10]]
    assert model.message(model.entities, [0], inverse=True).tolist() == [[11, 2]]


def test_rescal_is_head_times_matrix_times_tail():
    # W = [[1, 2], [3, 4]], stored row by row
    model = backbone("rescal", [[1.0, 10.0]], [[1.0, 2.0, 3.0, 4.0]])
    assert model.message(model.entities, [0]).tolist() == [[31, 42]]
    assert model.message(model.entities, [0], inverse=True).tolist() == [[21, 43]]


@pytest.mark.parametrize(("p", "distance"), [(1.0, 7.0), (2.0, 5.0), (float("inf"), 4.0)])
def test_transe_measures_in_its_own_norm(p, distance):
    model = backbone("transe", [[0.0, 0.0], [4.0, 5.0]], [[1.0, 1.0]], p=p)
    assert model.score_tails([0], [0])[0, 1].item() == pytest.approx(-distance)
    assert model.score_heads([0], [1])[0, 0].item() == pytest.approx(-distance)
    assert model.message(model.entities[:1], [0], inverse=True).tolist() == [[-1, -1]]


def test_rotate_head_message_is_the_inverse_rotation():
    quarter = torch.pi / 2
    model = backbone("rotate", [[1.0, 0.0]], [[quarter]])  # the number 1, turned by 90°
    torch.testing.assert_close(model.message(model.entities, [0]), torch.tensor([[0.0, 1.0]]))
    torch.testing.assert_close(
        model.message(model.entities, [0], inverse=True), torch.tensor([[0.0, -1.0]])
    )


@pytest.mark.parametrize(("p", "distance"), [(1.0, 5.0 + 13.0), (2.0, 194.0**0.5)])
def test_rotate_adds_up_moduli_of_complex_coordinates(p, distance):
    # [real ‖ imaginary]: the differences are 3 + 4i and 5 + 12i
    model = backbone("rotate", [[0.0, 0.0, 0.0, 0.0], [3.0, 5.0, 4.0, 12.0]], [[0.0, 0.0]], p=p)
    assert model.score_tails([0], [0])[0, 1].item() == pytest.approx(-distance)


def test_conve_reads_the_head_above_the_relation_and_adds_the_tail_bias():
    # 2 × 4 image of the head above that of the relation; one filter that picks its upper left
    # corner; a projection that adds up what it picked.
    filters = torch.zeros(1, 1, 3, 3)
    filters[0, 0, 0, 0] = 1
    entities = torch.zeros(2, 9)
    entities[0] = torch.tensor([100.0, 1, 2, 3, 4, 5, 6, 7, 8])
    entities[1] = torch.tensor([0.5, 1, 1, 1, 1, 1, 1, 1, 1])
    model = backbone_class("conve").from_tensors(
        entities,
        torch.tensor([[100.0, -1, -2, -3, -4, -5, -6, -7, -8]] * 2),
        reciprocal=True,
        filters=filters,
        filter_bias=torch.zeros(1),
        projection=torch.ones(8, 4),
        projection_bias=torch.zeros(8),
        height=2,
    )
    picked = 1 + 2 + 5 + 6  # rows 0 and 1, columns 0 and 1 of the 4 × 4 image
    assert model.message(entities[:1], [0]).tolist() == [[1] + [picked] * 8]
    assert model.score_tails([0], [0])[0, 1].item() == 8 * picked + 0.5


def test_a_plain_conve_is_refused_with_the_remedy():
    with pytest.raises(BackboneError, match="reciprocal_relations_model"):
        backbone_class("conve").random(5, 2, 9)


def test_cp_answers_towards_tails_with_one_half_and_towards_heads_with_the_other():
    model = backbone("cp", [[1.0, 2.0, 3.0, 4.0]], [[10.0, -1.0]])
    assert model.message(model.entities, [0]).tolist() == [[0, 0, 10, -2]]
    assert model.message(model.entities, [0], inverse=True).tolist() == [[30, -4, 0, 0]]


def test_a_reciprocal_cp_answers_both_ways_with_the_same_half():
    model = backbone_class("cp").from_tensors(
        torch.tensor([[1.0, 2.0]]), torch.tensor([[10.0], [20.0]]), reciprocal=True
    )
    assert model.message(model.entities, [0]).tolist() == [[0, 10]]
    assert model.message(model.entities, [0], inverse=True).tolist() == [[0, 20]]


def test_simple_is_the_mean_of_both_directions():
    # ½ (1 · 10 · 7 + 2 · 20 · 5)
    model = backbone("simple", [[1.0, 2.0], [5.0, 7.0]], [[10.0, 20.0]])
    assert model.message(model.entities[:1], [0]).tolist() == [[20, 5]]
    assert model.message(model.entities[:1], [0], inverse=True).tolist() == [[10, 10]]
    assert model.score_tails([0], [0])[0, 1].item() == (70 + 200) / 2


@pytest.mark.parametrize(("p", "distance"), [(1.0, 7.0), (2.0, 5.0)])
def test_transh_measures_on_the_hyperplane_of_the_relation(p, distance):
    # The normal takes the third coordinate out of head and tail: (1, 1) + (2, 0) to (6, 5)
    entities = [[1.0, 1.0, 50.0], [6.0, 5.0, -8.0]]
    model = backbone("transh", entities, [[2.0, 0.0, 0.0, 0.0, 0.0, 9.0]], p=p)
    assert model.message(model.entities[:1], [0]).tolist() == [[3, 1, 0]]
    assert model.message(model.entities[1:], [0], inverse=True).tolist() == [[4, 5, 0]]
    assert model.score_tails([0], [0])[0, 1].item() == pytest.approx(-distance)
    assert model.score_heads([0], [1])[0, 0].item() == pytest.approx(-distance)


def test_transh_projects_by_the_relation_of_each_question():
    generator = torch.Generator().manual_seed(0)
    model = backbone_class("transh").random(7, 3, 4, p=1.0)
    h, t = torch.randn(2, 5, 4, generator=generator)
    v, w = model.relations.chunk(2, dim=1)
    ids = torch.tensor([5, 0, 3, 1, 5])
    for n, r in enumerate(ids.tolist()):
        normal = w[r] / w[r].norm()
        out = torch.eye(4) - normal[:, None] * normal
        expected = -(out @ h[n] + v[r] - out @ t[n]).abs().sum()
        assert model.score(h, ids, t)[n].item() == pytest.approx(expected.item(), rel=1e-5)
        everyone = -(out @ h[n] + v[r] - model.entities @ out).abs().sum(1)
        scores = model.score_entities(model.message(h, ids), ids)[n]
        torch.testing.assert_close(scores, everyone)


def test_relational_tucker3_mixes_the_matrices_of_rescal():
    # W = 2 · [[1, 0], [0, 1]] − [[0, 1], [0, 0]] = [[2, −1], [0, 2]], stored row by row
    projection = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]).T
    model = backbone("relational_tucker3", [[1.0, 10.0]], [[2.0, -1.0]], projection=projection)
    assert model.message(model.entities, [0]).tolist() == [[2, 19]]
    assert model.message(model.entities, [0], inverse=True).tolist() == [[-8, 20]]


def test_a_projection_of_another_shape_is_refused():
    with pytest.raises(BackboneError, match=r"projection of shape \[4, 3\], not \[4, 2\]"):
        backbone("relational_tucker3", [[1.0, 2.0]], [[1.0, 2.0, 3.0]], projection=torch.ones(4, 2))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_transformer_is_torchs_encoder(activation):
    made = backbone_class("transformer").random(5, 2, 8, reciprocal=True, activation=activation)
    of_layers = [name for name in made.tensors() if name not in ("entities", "relations", "tokens")]
    model = made.with_tensors({  # what is 0 or 1 before training would not be missed
        name: torch.randn(3, *getattr(made, name).shape[1:]) for name in of_layers
    })  # fmt: skip
    layer = torch.nn.TransformerEncoderLayer(8, 8, 32, 0.0, activation)
    encoder = torch.nn.TransformerEncoder(layer, 3)
    ours = {
        "self_attn.in_proj_weight": model.attend, "self_attn.in_proj_bias": model.attend_bias,
        "self_attn.out_proj.weight": model.merge, "self_attn.out_proj.bias": model.merge_bias,
        "linear1.weight": model.widen, "linear1.bias": model.widen_bias,
        "linear2.weight": model.narrow, "linear2.bias": model.narrow_bias,
        "norm1.weight": model.scale_1, "norm1.bias": model.shift_1,
        "norm2.weight": model.scale_2, "norm2.bias": model.shift_2,
    }  # fmt: skip
    encoder.load_state_dict({
        f"layers.{row}.{name}": tensor[row] for name, tensor in ours.items() for row in range(3)
    })  # fmt: skip
    cls, head, relation = model.tokens
    h, ids = torch.randn(4, 8), torch.tensor([0, 3, 1, 2])
    sequence = torch.stack([cls.expand(4, 8), h + head, model.relations[ids] + relation])
    torch.testing.assert_close(
        model.message(h, ids), encoder(sequence)[0].detach(), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 3}, "3 attention heads needs an entity width that is divisible by their number"),
        ({"activation": "tanh"}, "relu and gelu, not 'tanh'"),
        ({"merge": torch.ones(1, 8, 7)}, r"merge of shape \[1, 8, 8\], not \[1, 8, 7\]"),
        ({"tokens": torch.ones(2, 8)}, r"tokens of shape \[3, 8\], not \[2, 8\]"),
    ],
)
def test_a_transformer_whose_parts_do_not_fit_is_refused(change, words):
    with pytest.raises(BackboneError, match=words):
        backbone_class("transformer").random(5, 2, 8, reciprocal=True, **change)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("name", ["rotate", "transe", "transh"])
def test_where_a_coordinate_coincides_a_distance_has_a_gradient(name, p):
    model = backbone_class(name).random(3, 2, 8, p=p)
    a, b = model.entities[:1].clone(), model.entities[1:2].clone()
    a[:, [1, 5]] = b[:, [1, 5]]  # for RotatE a complex number
    a.requires_grad_()
    model.distance(a, b).sum().backward()
    assert a.grad.isfinite().all()
