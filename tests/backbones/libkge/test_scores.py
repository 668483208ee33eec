"""Scores of checkpoints that LibKGE wrote, against the scores that LibKGE computed."""

import numpy as np
import pytest

from lmpnn_kge import KnowledgeGraph, PluginError, open_backbone, read_checkpoint
from lmpnn_kge.backbones.link_prediction import rank_split

from ...conftest import TOY
from ...libkge_files import Config, content, save

REFERENCES = {path.stem: path for path in (TOY / "reference").glob("*.npz")}
FILES = sorted(
    path for path in (TOY / "checkpoints").glob("*.pt") if path.name.rsplit(".", 2)[0] in REFERENCES
)


def reference(path):
    return np.load(REFERENCES[path.name.rsplit(".", 2)[0]])


def tolerance(backbone):
    """LibKGE's TransH adds 1e-6 to every coordinate of a difference, which ours does not."""
    return 1e-5 + 1e-6 * backbone.dim * (type(backbone).__name__ == "TransH")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_scores_are_those_of_libkge(path):
    backbone, expected = open_backbone(path), reference(path)
    tails = backbone.score_tails(expected["sp_s"], expected["sp_p"]).numpy()
    heads = backbone.score_heads(expected["po_p"], expected["po_o"]).numpy()
    np.testing.assert_allclose(tails, expected["sp"], rtol=0, atol=tolerance(backbone))
    np.testing.assert_allclose(heads, expected["po"], rtol=0, atol=tolerance(backbone))
    if backbone.entity_ids is not None:
        assert backbone.entity_ids == expected["entity_ids"].tolist()
        assert backbone.relation_ids == expected["relation_ids"].tolist()


@pytest.mark.parametrize(
    "path", [path for path in FILES if ".train" in path.name], ids=lambda path: path.name
)
def test_a_training_checkpoint_gets_its_names_from_the_dataset(path, toy_dataset):
    assert open_backbone(path).entity_ids is None
    backbone = open_backbone(path, dataset=toy_dataset)
    assert backbone.entity_ids == reference(path)["entity_ids"].tolist()


@pytest.mark.parametrize(
    "path", [path for path in FILES if ".cuda." not in path.name], ids=lambda path: path.name
)
def test_ranking_reproduces_the_metric_that_libkge_recorded(path, toy_dataset):
    """Ids, directions, scores, filter and ties at once: LibKGE validated as it trained."""
    recorded = read_checkpoint(path).validation
    if recorded is None or not recorded.metric.endswith("filtered_with_test"):
        assert "epoch0" in path.name or "old20" in path.name
        return
    backbone = open_backbone(path, dataset=toy_dataset)
    ranking = rank_split(backbone, KnowledgeGraph.open(toy_dataset), "valid")
    assert ranking.mrr == pytest.approx(recorded.value, abs=1e-6)


def test_a_model_that_no_backbone_opens_is_named(tmp_path):
    file = save(tmp_path / "mine.pt", content("mine", "Mine"))
    with pytest.raises(PluginError, match="is a Mine, which no installed backbone opens"):
        open_backbone(file)


def test_files_of_early_2019_have_neither_type_nor_model_tuple(tmp_path):
    today = content()
    state, _ = today.pop("model")
    del today["type"]
    old = {name.replace("_embeddings", "embeddings"): tensor for name, tensor in state.items()}
    file = save(tmp_path / "old.pt", today | {"model_state_dict": old})
    checkpoint = read_checkpoint(file)
    assert (checkpoint.kind, checkpoint.model) == ("LibKGE training checkpoint", "DistMult")
    assert checkpoint.entities.equal(state["_entity_embedder._embeddings.weight"])


def test_a_file_may_leave_the_model_section_to_libkges_defaults(tmp_path):
    options = {"model": "complex", "dataset": {"name": "tiny"}}
    file = save(tmp_path / "short.pt", content(config=Config(options)))
    assert type(open_backbone(file)).__name__ == "ComplEx"
