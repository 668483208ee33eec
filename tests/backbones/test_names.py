"""Names join a checkpoint to a dataset; positions never do."""

import pytest

from lmpnn_kge import DatasetError, KnowledgeGraph, open_backbone

from ..conftest import TOY
from ..libkge_files import ENTITIES, RELATIONS, content, dataset_folder, save

IDS = [f"e{i}" for i in range(ENTITIES)]
RELATION_IDS = [f"r{i}" for i in range(RELATIONS)]


def opened(tmp_path, entity_ids, relation_ids=RELATION_IDS, **changes):
    file = save(tmp_path / "file.pt", content(**changes))
    return open_backbone(file, dataset=dataset_folder(tmp_path / "g", entity_ids, relation_ids))


def test_another_order_is_not_a_mismatch(tmp_path):
    assert opened(tmp_path, IDS[::-1]).entity_ids == IDS


def test_a_dataset_with_fewer_entities_is_joined_with_a_note(tmp_path):
    with pytest.warns(UserWarning, match=r"that .* lacks: 1 \('e4'\)"):
        assert opened(tmp_path, IDS[:-1]).entity_ids == IDS


def test_a_dataset_with_unknown_entities_is_refused_with_examples(tmp_path):
    with pytest.raises(DatasetError, match=r"the checkpoint lacks: 2 \('x', 'y'\)"):
        opened(tmp_path, [*IDS, "x", "y"])


def test_unknown_relations_are_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"relation ids that the checkpoint lacks: 1 \('x'\)"):
        opened(tmp_path, IDS, ["r0", "r1", "x"])


def test_a_renamed_entity_is_refused_even_if_all_others_agree_by_position(tmp_path):
    graph = KnowledgeGraph.open(TOY / "dataset")
    ids = [*graph.entity_ids[:3], "new three", *graph.entity_ids[4:]]
    folder = dataset_folder(tmp_path / "g", ids, graph.relation_ids)
    with pytest.raises(DatasetError, match=r"the checkpoint lacks: 1 \('new three'\)"):
        open_backbone(TOY / "checkpoints" / "complex.package.pt", dataset=folder)


def test_a_checkpoint_without_names_needs_a_dataset_of_its_size(tmp_path):
    with pytest.raises(DatasetError, match="2 entity ids, but the checkpoint has 5 rows"):
        opened(tmp_path, ["a", "b"], dataset=None)
