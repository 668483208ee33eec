"""Our own reader of torch's files: it reads what torch reads, and cannot be led astray."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.backbones.libkge import safe_load as module
from lmpnn_kge.backbones.libkge.safe_load import safe_open
from lmpnn_kge.errors import CheckpointError

from ...conftest import TOY
from ...libkge_files import content, safe_load, save

SOUND = TOY / "checkpoints" / "complex.package.pt"
BOTH = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])


def with_pickle(path, pickled: bytes):
    """A file as torch lays it out, with another pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    return path


def assert_refused(path, words):
    with pytest.raises(CheckpointError, match=words) as caught, safe_open(path):
        pass
    assert "weights_only" not in str(caught.value)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(value=plain, zipped=st.booleans())
def test_plain_values_come_back_as_they_were_saved(tmp_path_factory, value, zipped):
    path = tmp_path_factory.mktemp("plain") / "file.pt"
    torch.save(value, path, _use_new_zipfile_serialization=zipped)
    assert safe_load(path) == value


@BOTH
@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.bool,
    ],
)  # fmt: skip
def test_tensors_of_every_type_come_back_with_the_same_bits(tmp_path, dtype, zipped):
    table = torch.arange(24).reshape(4, 6).to(dtype)
    saved = {
        "whole": table,
        "row": table[2],
        "turned": table.T,
        "step": table[::2, 1::3],
        "scalar": table[1, 1],
        "again": table,
        "none": table[:0],
    }
    if dtype.is_floating_point:
        saved["parameter"] = torch.nn.Parameter(table)
    torch.save(saved, tmp_path / "file.pt", _use_new_zipfile_serialization=zipped)
    loaded = safe_load(tmp_path / "file.pt")
    for name, tensor in saved.items():
        assert torch.equal(loaded[name], tensor), name
        assert name == "none" or loaded[name].dtype == dtype


def test_a_file_of_a_machine_with_another_order_of_bytes(tmp_path):
    torch.save(torch.tensor([1.5, -2.0]), tmp_path / "little.pt")
    with (
        zipfile.ZipFile(tmp_path / "little.pt") as little,
        zipfile.ZipFile(tmp_path / "big.pt", "w") as big,
    ):
        for name in little.namelist():
            data = little.read(name)
            if name.endswith("byteorder"):
                data = b"big"
            elif name.endswith("data/0"):
                data = np.frombuffer(data, "<f4").astype(">f4").tobytes()
            big.writestr(name, data)
    assert safe_load(tmp_path / "big.pt").tolist() == [1.5, -2.0]


def test_a_file_without_checksums_is_read(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.ones(3), tmp_path / "file.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert safe_load(tmp_path / "file.pt").tolist() == [1, 1, 1]


def test_a_changed_number_in_a_table_is_noticed(tmp_path):
    torch.save(torch.full((100,), 0.3), tmp_path / "file.pt")
    data = bytearray((tmp_path / "file.pt").read_bytes())
    data[data.index(np.float32(0.3).tobytes() * 3) + 8] ^= 1
    (tmp_path / "file.pt").write_bytes(data)
    with pytest.raises(CheckpointError, match="data/0 is damaged: its checksum differs"):
        safe_load(tmp_path / "file.pt")


def test_torch_and_pickle_never_see_a_file(monkeypatch):
    def never(*arguments, **options):
        pytest.fail("another reader was used")

    for owner, name in (
        (torch, "load"),
        (pickle, "load"),
        (pickle, "loads"),
        (pickle, "Unpickler"),
    ):
        monkeypatch.setattr(owner, name, never)
    assert safe_load(SOUND)["type"] == "package"


def test_tensors_that_the_model_does_not_need_are_not_read(monkeypatch):
    read = []
    original = module.SavedFile.read
    monkeypatch.setattr(
        module.SavedFile,
        "read",
        lambda file, storage: read.append(storage) or original(file, storage),
    )
    from lmpnn_kge.backbones.libkge.checkpoint import read_libkge

    path = TOY / "checkpoints" / "complex.train.pt"
    checkpoint = read_libkge(path)
    with safe_open(path) as saved:
        assert len(saved.storages) > len(set(read)) == len(checkpoint.state)


DEEP = b"\x80\x02)" + b"\x85" * 150_000
DOUBLED = b"\x80\x02)" + b"q\x00h\x00\x86" * 60


@pytest.mark.parametrize(
    ("pickled", "words"),
    {
        "a key of nested tuples": (b"\x80\x02}" + DEEP[2:] + b"Ns.", "dictionary with the key"),
        "a key that takes years to hash": (b"\x80\x02}" + DOUBLED[2:] + b"Ns.", "with the key"),
        "a key that is a list": (b"\x80\x02}]Ns.", "with the key"),
        "a huge number as a key": (b"\x80\x02}\x8a\x10" + b"\x7f" * 16 + b"Ns.", "with the key"),
        "a text without an end": (b"\x80\x02X\xff\xff\xff\xff.", "ends too early"),
        "an operation of newer pickles": (b"\x80\x02\x8f.", "which torch never uses"),
        "text as a number": (b"\x80\x02I1\n.", "which torch never uses"),
        "two million lists": (b"\x80\x02" + b"]" * 2_000_000 + b".", "more than 1,000,000 lists"),
        "an empty stack": (b"\x80\x02.", "do not fit together"),
        "two values": (b"\x80\x02NN.", "do not fit together"),
        "an open mark": (b"\x80\x02N(.", "do not fit together"),
        "an empty place": (b"\x80\x02h\x07.", "place 7, which is empty"),
        "no end": (b"\x80\x02N", "ends too early"),
        "more behind the end": (b"\x80\x02N.N.", "something follows"),
        "a call of a number": (b"\x80\x02K\x01)R.", "it calls 1"),
        "a call of a storage": (b"\x80\x02ctorch\nFloatStorage\n)R.", "it calls torch.FloatSto"),
        "a state of a number": (b"\x80\x02K\x01}b.", "gives a state to 1"),
        "a parameter of nothing": (
            b"\x80\x02ctorch._utils\n_rebuild_parameter\n(NNNtR.",
            "parameter is not a tensor",
        ),
        "a tensor without numbers": (
            b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NK\x00))\x89NtR.",
            "has no numbers",
        ),
        "other arguments": (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", "other arguments"),
        "a reference to anything": (b"\x80\x02X\x01\x00\x00\x00xQ.", "which torch never does"),
        "a name without an end": (b"\x80\x02c" + b"x" * 2000, "name without an end"),
        "a hidden name": (b"\x80\x02cos\nsystem\n.", "it names os.system"),
        "an ordered dict of something": (
            b"\x80\x02ccollections\nOrderedDict\n]\x85R.",
            "as torch never does",
        ),
    }.values(),
)
def test_pickles_that_torch_never_writes_are_refused(tmp_path, pickled, words):
    assert_refused(with_pickle(tmp_path / "file.pt", pickled), words)


@pytest.mark.parametrize("pickled", [DEEP + b".", DOUBLED + b"."], ids=["deep", "doubled"])
def test_nested_tuples_that_nobody_hashes_are_harmless(tmp_path, pickled):
    with safe_open(with_pickle(tmp_path / "file.pt", pickled)) as saved:
        assert isinstance(saved.content, tuple)


def rezipped(path, edit):
    """A sound file with other members: edit gets a list of names and contents."""
    with zipfile.ZipFile(SOUND) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in edit(members):
            archive.writestr(name, data)
    return path


HOSTILE = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."


def test_a_member_that_differs_in_case_is_another_member(tmp_path):
    path = rezipped(
        tmp_path / "file.pt",
        lambda members: [(members[0][0].replace("data.pkl", "DATA.PKL"), HOSTILE), *members],
    )
    assert safe_load(path)["type"] == "package"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_is_refused(tmp_path):
    path = rezipped(tmp_path / "file.pt", lambda members: [*members, (members[0][0], HOSTILE)])
    assert_refused(path, "names occur twice")


def test_two_pickles_are_refused(tmp_path):
    path = rezipped(tmp_path / "file.pt", lambda members: [*members, ("other/data.pkl", HOSTILE)])
    assert_refused(path, "that torch did not write")


def test_an_old_file_before_an_archive_is_refused(tmp_path):
    old = io.BytesIO()
    torch.save({"type": "package"}, old, _use_new_zipfile_serialization=False)
    path = tmp_path / "file.pt"
    path.write_bytes(old.getvalue() + SOUND.read_bytes())
    assert_refused(path, "its length does not fit its tensors")


def test_a_member_that_is_elsewhere_than_its_directory_says_is_refused(tmp_path):
    data = bytearray(SOUND.read_bytes())
    first = data.index(b"data.pkl")
    data[first : first + 8] = b"evil.pkl"
    path = tmp_path / "file.pt"
    path.write_bytes(data)
    assert_refused(path, "data.pkl is not where its directory says")


def test_compressed_members_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "file.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02N.")
    assert_refused(tmp_path / "file.pt", "data.pkl is compressed")


@BOTH
def test_a_file_that_ends_early_is_refused_wherever_it_ends(tmp_path, zipped):
    whole = save(tmp_path / "whole.pt", content(), _use_new_zipfile_serialization=zipped)
    data = whole.read_bytes()
    path = tmp_path / "part.pt"
    for end in range(1, len(data), 7):
        path.write_bytes(data[:end])
        with pytest.raises(CheckpointError):
            safe_load(path)
