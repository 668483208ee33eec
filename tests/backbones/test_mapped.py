"""Tables that stay in their file: the same numbers as in memory, checked as strictly."""

import os
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lmpnn_kge import CheckpointError, backbone_class, open_backbone, read_checkpoint, save_backbone
from lmpnn_kge.backbones import mapped
from lmpnn_kge.backbones.mapped import is_mapped
from lmpnn_kge.backbones.open import build, find_backbone
from lmpnn_kge.backbones.safetensors import KEY, safe_open

from ..libkge_files import DIM, content, save

ENTITIES = 300

HALVES = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64]
)


@pytest.fixture
def mapping(monkeypatch):
    """Let tables of a kilobyte count as large, and be checked in small parts."""
    monkeypatch.setattr(mapped, "LARGE", 1000)
    monkeypatch.setattr(mapped, "BLOCK", 512)


def complex_backbone(**options):
    return backbone_class("complex").random(ENTITIES, 3, 8, **options)


def opened(file):
    """A backbone whose table may stay in its file, and the notes."""
    checkpoint = read_checkpoint(file)
    return build(checkpoint, find_backbone(checkpoint)[1])


def safetensors_file(folder, dtype=torch.float32):
    file = folder / "file.safetensors"
    names = [f"e{i}" for i in range(ENTITIES)]
    save_backbone(complex_backbone(entity_ids=names), file)
    with safe_open(file, "pt") as saved:
        metadata = saved.metadata()
    tensors = load_file(file)
    tensors["entities"] = tensors["entities"].to(dtype)
    save_file(tensors, file, metadata)
    return file


def libkge_file(folder, table=None, **options):
    table = torch.randn(ENTITIES, DIM) if table is None else table
    package = content()
    package["model"][0]["_entity_embedder._embeddings.weight"] = table
    package["dataset"]["meta"]["entity_ids"] = [f"e{i}" for i in range(len(table))]
    return save(folder / "file.pt", package, **options)


def assert_same(backbone, other):
    """The rows and the scores of two backbones are the same, wherever their tables are."""
    ids = torch.tensor([[5, 0], [299, 5]])
    assert torch.equal(backbone.rows(ids), other.rows(ids))
    heads, relations = [3, 250, 3], [0, 1, 2]
    scores = backbone.score_tails(heads, relations)
    assert torch.allclose(scores, other.score_tails(heads, relations), rtol=1e-6)
    assert backbone.entity_ids == other.entity_ids


@HALVES
def test_a_safetensors_table_of_any_precision_is_mapped(tmp_path, mapping, monkeypatch, dtype):
    file = safetensors_file(tmp_path, dtype)
    backbone, notes = opened(file)
    assert is_mapped(backbone.entities)
    assert backbone.entities.dtype == dtype
    assert not notes
    assert not is_mapped(backbone.relations)
    assert backbone.relations.dtype == torch.float32
    monkeypatch.undo()
    in_memory, _ = opened(file)
    assert not is_mapped(in_memory.entities)
    assert in_memory.entities.dtype == torch.float32
    assert_same(backbone, in_memory)


@HALVES
def test_a_libkge_table_of_any_precision_is_mapped(tmp_path, mapping, monkeypatch, dtype):
    file = libkge_file(tmp_path, torch.randn(ENTITIES, DIM).to(dtype))
    backbone, notes = opened(file)
    assert is_mapped(backbone.entities)
    assert backbone.entities.dtype == dtype
    assert not notes
    monkeypatch.undo()
    assert_same(backbone, opened(file)[0])


def test_a_part_of_a_larger_tensor_is_mapped_too(tmp_path, mapping):
    table = torch.randn(ENTITIES, 2 * DIM)[:, ::2]
    backbone, _ = opened(libkge_file(tmp_path, table))
    assert is_mapped(backbone.entities)
    assert torch.equal(backbone.rows(range(ENTITIES)), table)


def test_a_table_that_fits_is_copied_into_memory(tmp_path, mapping):
    file = safetensors_file(tmp_path, torch.float16)
    backbone = open_backbone(file)
    assert backbone.table_memory is None
    assert not is_mapped(backbone.entities)
    assert backbone.entities.dtype == torch.float32
    assert_same(backbone, opened(file)[0])
    assert is_mapped(open_backbone(file, table_memory="4KB").entities)


def test_a_large_relation_table_is_read_into_memory(tmp_path, mapping):
    relations = torch.randn(ENTITIES, DIM).half()
    package = content()
    package["model"][0]["_relation_embedder._embeddings.weight"] = relations
    package["dataset"]["meta"]["relation_ids"] = None
    backbone, _ = opened(save(tmp_path / "file.pt", package))
    assert not is_mapped(backbone.relations)
    assert torch.equal(backbone.relations[:ENTITIES], relations.float())


def test_a_mapped_file_can_be_removed_and_replaced(tmp_path, mapping):
    file = safetensors_file(tmp_path)
    backbone, _ = opened(file)
    before = backbone.entities.clone()
    mapped.release(backbone.entities)
    save_backbone(complex_backbone(seed=1), file)
    assert torch.equal(backbone.entities, before)
    os.remove(file)
    mapped.release(backbone.entities)
    assert torch.equal(backbone.entities, before)


def test_a_table_whose_bytes_are_not_aligned_is_copied_once(tmp_path, mapping):
    for pad in range(4):  # the length of a name moves what follows
        legacy = content(job_id="x" * pad)
        table = torch.randn(ENTITIES, DIM)
        legacy["model"][0]["_entity_embedder._embeddings.weight"] = table
        legacy["dataset"]["meta"]["entity_ids"] = None
        file = save(tmp_path / f"{pad}.pt", legacy, _use_new_zipfile_serialization=False)
        backbone, notes = opened(file)
        assert is_mapped(backbone.entities)
        assert torch.equal(backbone.rows(range(ENTITIES)), table)
        copies = list(tmp_path.glob(f"{pad}.pt.*.table"))
        assert len(copies) == len(notes)
        for copy, note in zip(copies, notes, strict=True):
            assert copy.name in note
            assert "once" in note
            assert opened(file)[1] == []  # it is used
            copy.write_bytes(bytes(copy.stat().st_size))
            again, notes = opened(file)  # it is of another table
            assert notes
            assert torch.equal(again.rows(range(ENTITIES)), table)
    assert len(list(tmp_path.glob("*.table"))) == 3


def test_a_safetensors_file_that_is_not_aligned_is_copied_once(tmp_path, mapping):
    file = safetensors_file(tmp_path)
    whole = file.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    file.write_bytes(
        struct.pack("<Q", length + 1) + whole[8 : 8 + length] + b" " + whole[8 + length :]
    )
    (backbone, notes), (other, _) = opened(file), opened(file)
    assert len(notes) == 1
    assert len(list(tmp_path.glob("*.table"))) == 1
    assert_same(backbone, other)


def test_damage_of_a_mapped_table_is_noticed(tmp_path, mapping):
    file = libkge_file(tmp_path)
    whole = bytearray(file.read_bytes())
    table = read_checkpoint(file).entities.numpy().tobytes()
    whole[bytes(whole).index(table) + 1000] ^= 1
    file.write_bytes(whole)
    with pytest.raises(CheckpointError, match="checksum differs"):
        read_checkpoint(file)


def test_numbers_of_a_mapped_table_must_be_finite(tmp_path, mapping):
    table = torch.randn(ENTITIES, DIM)
    table[-1, -1] = torch.nan
    with pytest.raises(CheckpointError, match="entities of DistMult has NaN"):
        opened(libkge_file(tmp_path, table))


def test_a_shortened_file_is_refused(tmp_path, mapping):
    for file in (safetensors_file(tmp_path), libkge_file(tmp_path)):
        whole = file.read_bytes()
        for share in (0.9, 0.5, 0.1):
            file.write_bytes(whole[: int(share * len(whole))])
            with pytest.raises(CheckpointError):
                read_checkpoint(file)


def test_bytes_beyond_the_end_are_never_mapped(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(5000))
    with file.open("rb") as stream:
        assert len(mapped.map_bytes(stream, 4990, 10)) == 10
        for start, count in ((4990, 11), (-1, 2), (6000, 0), (0, 2**60)):
            with pytest.raises(ValueError, match="ends too early"):
                mapped.map_bytes(stream, start, count)


def test_what_is_mapped_is_forgotten_with_its_tensor(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(np.arange(4096, dtype=np.int64).tobytes())
    with file.open("rb") as stream:
        table = torch.from_numpy(mapped.map_bytes(stream, 0, 8 * 4096)).view(torch.int64)
    assert is_mapped(table)
    assert is_mapped(table[17:])
    assert not is_mapped(table.clone())
    assert len(mapped._MAPPED) == 1
    del table
    assert not mapped._MAPPED


def test_metadata_without_our_key_is_refused(tmp_path, mapping):
    file = tmp_path / "other.safetensors"
    save_file({"entities": torch.zeros(ENTITIES, DIM)}, file)
    with pytest.raises(CheckpointError, match=KEY):
        read_checkpoint(file)
