"""Each built-in backbone against its formula, written out by hand on small numbers."""

import pytest
import torch

from lmpnn_kge import BackboneError, load_backbone


def backbone(name, entities, relations, **fields):
    return load_backbone(name).from_tensors(
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
    model = load_backbone("conve").from_tensors(
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
        load_backbone("conve").random(5, 2, 9)
