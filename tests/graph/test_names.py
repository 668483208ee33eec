"""Names join a checkpoint to a dataset; positions never do, unless they prove themselves."""

import pytest

from lmpnn_kge import DatasetError, LibkgeDataset, open_backbone

from ..conftest import TOY
from ..libkge_files import ENTITIES, RELATIONS, content, dataset_folder, save

IDS = [f"e{i}" for i in range(ENTITIES)]
RELATION_IDS = [f"r{i}" for i in range(RELATIONS)]


def opened(tmp_path, entity_ids, relation_ids=RELATION_IDS, **changes):
    file = save(tmp_path / "file.pt", content(**changes))
    return open_backbone(file, dataset=dataset_folder(tmp_path / "g", entity_ids, relation_ids))


def test_another_order_is_no_mismatch(tmp_path):
    assert opened(tmp_path, IDS[::-1]).entity_ids == IDS


def test_a_dataset_with_fewer_entities_is_joined_and_said(tmp_path):
    with pytest.warns(UserWarning, match=r"that .* has not: 1 \('e4'\)"):
        assert opened(tmp_path, IDS[:-1]).entity_ids == IDS


def test_a_dataset_with_unknown_entities_is_refused_with_examples(tmp_path):
    with pytest.raises(DatasetError, match=r"the checkpoint has not: 2 \('x', 'y'\)"):
        opened(tmp_path, [*IDS, "x", "y"])


def test_unknown_relations_are_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"relation ids that the checkpoint has not: 1 \('x'\)"):
        opened(tmp_path, IDS, ["r0", "r1", "x"])


def toy_copy(tmp_path, change):
    graph = LibkgeDataset.open(TOY / "dataset")
    ids = list(graph.entity_ids)
    change(ids)
    return dataset_folder(tmp_path / "g", ids, graph.relation_ids)


def test_a_few_renamed_rows_among_rows_that_agree_are_joined_and_said(tmp_path):
    def rename(ids):
        ids[3], ids[30] = "new three", "new thirty"

    folder = toy_copy(tmp_path, rename)
    with pytest.warns(UserWarning, match="spells differently, while all others agree.*2 "):
        backbone = open_backbone(TOY / "checkpoints" / "complex.package.pt", dataset=folder)
    assert (backbone.entity_ids[3], backbone.entity_ids[30]) == ("new three", "new thirty")


def test_renamed_rows_are_refused_where_any_other_row_has_moved(tmp_path):
    def rename_and_swap(ids):
        ids[3] = "new three"
        ids[5], ids[6] = ids[6], ids[5]

    folder = toy_copy(tmp_path, rename_and_swap)
    with pytest.raises(DatasetError, match="new three"):
        open_backbone(TOY / "checkpoints" / "complex.package.pt", dataset=folder)


def test_a_checkpoint_without_names_needs_a_dataset_of_its_size(tmp_path):
    with pytest.raises(DatasetError, match="2 entity ids, but the checkpoint has 5 rows"):
        opened(tmp_path, ["a", "b"], dataset=None)
