"""Tables that are larger than a device may hold: the same rows and scores, a part at a time."""

import pytest
import torch

from lmpnn_kge import backbone_class
from lmpnn_kge.backbones import placing
from lmpnn_kge.backbones.placing import BLOCKS, SINGLE, block_rows, fits, table_limit
from lmpnn_kge.errors import QueryError

from .test_contract import ENTITIES, RELATIONS, close, every_backbone, make

CPU = torch.device("cpu")


def in_blocks(backbone):
    """The backbone, on a device that may hold too little for all of its table."""
    return backbone.placed(CPU, "0.3KB")


@every_backbone
def test_every_backbone_scores_a_table_in_blocks_as_a_whole(name):
    whole = make(name)
    parted = in_blocks(whole)
    assert len(list(parted.blocks())) > 2
    heads, relations = [0, 7, 10, 7], [1, 0, 2 * RELATIONS - 1, 1]
    assert torch.equal(parted.rows(heads), whole.rows(heads))
    assert close(parted.score_tails(heads, relations), whole.score_tails(heads, relations))
    assert close(parted.score_heads(relations, heads), whole.score_heads(relations, heads))
    estimates = whole.rows(heads)
    assert close(parted.score_entities(estimates), whole.score_entities(estimates))


@every_backbone
def test_the_blocks_are_the_table_and_fit(name):
    whole = make(name)
    parted = in_blocks(whole)
    spans, rows = zip(*parted.blocks(), strict=True)
    assert [row for span in spans for row in range(ENTITIES)[span]] == list(range(ENTITIES))
    assert torch.equal(torch.cat(rows), whole.entities)
    assert BLOCKS * max(part.numel() for part in rows) * SINGLE <= parted.table_memory


def test_a_table_that_fits_is_as_it_was():
    whole = make("complex")
    assert whole.placed(CPU).table_memory is None
    ((span, rows),) = whole.placed(CPU, "1MB").blocks()
    assert (span, rows.data_ptr()) == (slice(0, ENTITIES), whole.entities.data_ptr())


def test_a_table_can_be_loaded_after_all():
    whole = make("complex")
    loaded = in_blocks(whole).to("cpu")
    assert loaded.table_memory is None
    assert torch.equal(loaded.entities, whole.entities)
    assert in_blocks(whole).to(dtype=torch.float64).entities.dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_of_half_precision_become_single_when_they_are_read(dtype):
    whole = make("complex")
    halved = in_blocks(whole).with_tensors({"entities": whole.entities.to(dtype)})
    rounded = whole.with_tensors({"entities": whole.entities.to(dtype).float()})
    assert torch.equal(halved.rows([3, 1]), rounded.rows([3, 1]))
    assert close(halved.score_tails([3], [1]), rounded.score_tails([3], [1]))


def test_the_typical_number_is_the_same_in_parts(monkeypatch):
    whole = make("complex")
    expected = whole.typical_number()
    monkeypatch.setattr("lmpnn_kge.backbones.embedding.MANY_NUMBERS", 3 * 16 * whole.dim)
    assert whole.typical_number() == pytest.approx(expected, rel=1e-6)
    assert in_blocks(whole).typical_number() == whole.typical_number()


def test_a_backbone_says_where_its_table_is():
    whole = backbone_class("complex").random(300_000, 2, 8)
    assert whole.table_note is None
    assert "table in blocks" in repr(whole.placed(CPU, "1MB"))
    note = whole.placed(CPU, "1MB").table_note
    assert "table of 9.6MB" in note
    assert "cpu holds at most 1MB" in note


def test_the_limit_is_a_size_or_half_of_the_memory(monkeypatch):
    monkeypatch.setattr(placing, "machine_memory", lambda: 16 * 10**9)
    assert table_limit(None, CPU) == 8 * 10**9
    assert table_limit("1.5GB", CPU) == 1_500_000_000
    assert table_limit("2KiB", CPU) == 2048
    with pytest.raises(QueryError, match="such as 500MB or 8GB"):
        table_limit("lots", CPU)


def test_a_table_fits_with_its_copies():
    table = torch.empty(1000, 10)
    assert fits(table, 100_000)
    assert not fits(table, 99_999)
    assert block_rows(table, CPU, 0) == 1
    assert block_rows(table, CPU, 160 * 50) == 50
    assert block_rows(table, CPU, 10**9) == 960
