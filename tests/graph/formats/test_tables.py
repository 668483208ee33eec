"""Tables of triples: what is read, what is refused, and that both ways of reading agree."""

import gzip
import json
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmpnn_kge import DatasetError
from lmpnn_kge.graph.formats import table_columns, tables
from lmpnn_kge.graph.formats.reading import ReadOptions, Report, read_options
from lmpnn_kge.graph.formats.sources import read_source
from lmpnn_kge.graph.formats.table_layout import Columns, find_layout

TRIPLES = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a")]


def named(numbered):
    """Named triples in the order of their source."""
    entities, relations = numbered.entities, numbered.relations
    return [(entities[s], relations[p], entities[o]) for s, p, o in numbered.triples.tolist()]


def read(source, **options):
    return named(read_source(source, read_options(options)).numbered)


def written(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


pieces = st.sampled_from(
    [
        "a",
        "bb",
        "ç",
        "\t",
        ",",
        ";",
        '"',
        '""',
        "\n",
        "\r\n",
        "\r",
        " ",
        "\0",
        "\\",
        "#",
        "\ufeff",
        "",
    ]
)
rows = st.lists(st.lists(pieces, max_size=4).map("".join), min_size=3, max_size=4)


@st.composite
def texts(draw):
    """Tables with something wrong here and there."""
    sign = draw(st.sampled_from(["\t", ","]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    clean = st.lists(st.sampled_from(["a", "b", "é x", '"q"', '"a,b"']), min_size=3, max_size=3)
    table = draw(st.lists(st.one_of(clean, clean, clean, rows), max_size=6))
    text = end.join(sign.join(row) for row in table)
    return sign, text + draw(st.sampled_from(["", end]))


@settings(deadline=None, max_examples=50)
@given(texts(), st.booleans(), st.booleans())
@example((",", 'a,r,"b"c\na,r,b'), True, False)
@example((",", '"a\nb",r,c\n'), True, False)
@example(("\t", "a\tr\tb\na\tr\tb\t\n"), False, False)
@example(("\t", "\nhead\trelation\ttail\na\tr\tb"), False, True)  # the header is the second line
def test_what_duckdb_reads_is_what_is_read_line_by_line(tmp_path_factory, text, quoted, header):
    sign, content = text
    file = tmp_path_factory.mktemp("table") / "table.tsv"
    file.write_bytes(content.encode())
    options = ReadOptions(delimiter=sign, quoted=quoted, header=header)
    try:
        layout = find_layout(file, ".tsv", options, Report())
    except DatasetError:
        return
    fast = None if layout is None else table_columns.read_text(file, layout)
    if fast is not None:
        report = Report(skip_bad=0)
        assert named(fast) == named(tables.read_lines(file, layout, report))
        assert not report.skipped


def test_a_clean_table_is_read_by_duckdb(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "read_lines", lambda *_: pytest.fail("read line by line"))
    content = "".join(f"{h}\t{r}\t{t}\r\n" for h, r, t in TRIPLES)
    assert read(written(tmp_path, "a.tsv", content)) == TRIPLES
    content = "".join(f'"{h}";"{r}";"{t}"\n' for h, r, t in TRIPLES)
    assert read(written(tmp_path, "a.csv", content)) == TRIPLES


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_delimiter_of_a_csv_file_is_found(tmp_path, sign):
    content = "".join(sign.join(triple) + "\n" for triple in TRIPLES)
    assert read(written(tmp_path, "a.csv", content)) == TRIPLES


def test_a_delimiter_that_cannot_be_found_must_be_said(tmp_path):
    file = written(tmp_path, "a.csv", "a;r|x;b|y\nb;r|x;c|y\n")
    with pytest.raises(
        DatasetError, match=r"may be separated by ';' or '\|'; say by which with --d"
    ):
        read(file)
    assert read(file, delimiter=";")[0] == ("a", "r|x", "b|y")
    assert read(written(tmp_path, "a.dat", "a r b\nb r a\n"), delimiter=" ")[1] == ("b", "r", "a")


FIVE = "weight,drug,target,action,since\n.5,Aspirin,COX1,inhibits,1971\n.9,Aspirin,COX2,inhibits,\n"


@pytest.mark.parametrize("columns", ["drug,action,target", "2,4,3", "drug,4,target"])
def test_columns_are_named_or_numbered_and_the_others_ignored_with_a_note(tmp_path, columns):
    file = written(tmp_path, "five.csv", FIVE)
    source = read_source(file, read_options({"columns": columns, "header": True}))
    assert named(source.numbered) == [
        ("Aspirin", "inhibits", "COX1"),
        ("Aspirin", "inhibits", "COX2"),
    ]
    assert source.notes == (f"{file}: the columns weight, since are ignored",)


def test_named_columns_need_no_header_option(tmp_path):
    assert len(read(written(tmp_path, "five.csv", FIVE), columns="drug,action,target")) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "by commas, but has 5 columns (weight, drug, target, action, since); say which with"),
        ({"columns": "drug,kind,target"}, "line 1 has no column 'kind'; choose from: action, drug"),
        ({"columns": "drug,6,target"}, "has no column '6'"),
        ({"columns": "1,6,2", "header": False}, "has 5 columns, and none is '6'"),
        ({"columns": "drug,drug,target"}, "the columns drug, drug, target are not distinct"),
        ({"columns": "drug,target"}, "'drug,target' must be 3: head, relation and tail"),
        ({"columns": "drug,a,target", "relation": "r"}, "must be 2: head and tail"),
        ({"delimiter": "::"}, "the delimiter must be one character"),
        ({"delimiter": '"'}, "cannot separate columns"),
        ({"colums": "a"}, "there is no option 'colums' to read triples; did you mean 'columns'"),
        ({"relation": ""}, "the relation '' is empty"),
        ({"format": "xlsx"}, "unknown format 'xlsx'; "),
    ],
)
def test_columns_that_cannot_be_are_refused(tmp_path, options, words):
    with pytest.raises(DatasetError) as refused:
        read(written(tmp_path, "five.csv", FIVE), **options)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "header", ["tail,relation,head", "Object,Predicate,Subject", "target,relation,source"]
)
def test_a_header_of_well_known_words_is_found(tmp_path, header):
    content = header + "\n" + "".join(f"{t},{r},{h}\n" for h, r, t in TRIPLES)
    assert read(written(tmp_path, "a.csv", content)) == TRIPLES


def test_two_columns_take_one_relation_for_all(tmp_path):
    file = written(tmp_path, "links.csv", "a,b\nb,c\n")
    assert read(file, relation="links to") == [("a", "links to", "b"), ("b", "links to", "c")]
    with pytest.raises(
        DatasetError,
        match=r"has 2 columns \(a, b\); give the relation of all lines with `split --r",
    ):
        read(file)
    named = written(tmp_path, "more.csv", "year,from,to\n1,a,b\n")
    assert read(named, relation="r", columns="from,to") == [("a", "r", "b")]


def test_several_files_and_patterns_are_one_graph(tmp_path):
    for number, triple in enumerate(TRIPLES):
        written(tmp_path, f"part-{number}.tsv", "\t".join(triple) + "\n")
    assert read(str(tmp_path / "part-*.tsv")) == TRIPLES
    assert read([tmp_path / "part-1.tsv", tmp_path / "part-0.tsv"]) == [TRIPLES[1], TRIPLES[0]]
    with pytest.raises(DatasetError, match="no file matches"):
        read(str(tmp_path / "none-*.tsv"))
    with pytest.raises(DatasetError, match=r"part-0\.tsv is given twice"):
        read([tmp_path / "part-0.tsv", str(tmp_path / "part-*.tsv")])


def test_a_name_with_signs_of_a_pattern_is_one_file(tmp_path):
    file = written(tmp_path, "a[1]*.tsv", "a\tr\tb\n")
    written(tmp_path, "a1x.tsv", "x\tr\ty\n")
    assert read(file) == [("a", "r", "b")]


def test_compressed_files_are_read(tmp_path):
    content = "".join("\t".join(triple) + "\n" for triple in TRIPLES).encode()
    assert read(written(tmp_path, "a.tsv.gz", gzip.compress(content))) == TRIPLES
    if sys.version_info < (3, 14):
        zstandard = pytest.importorskip("zstandard")
        assert read(written(tmp_path, "a.tsv.zst", zstandard.compress(content))) == TRIPLES


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.csv.gz", "a.tsv.zst"])
@pytest.mark.parametrize("content", ["other", "cut", "empty"])
def test_a_damaged_compressed_file_is_refused(tmp_path, name, content):
    if name.endswith("zst") and sys.version_info < (3, 14):
        pytest.importorskip("zstandard")
    cut = gzip.compress(b"a\tr\tb\n" * 9)[:-9]
    file = written(tmp_path, name, {"other": b"no such thing", "cut": cut, "empty": b""}[content])
    if content == "empty":
        assert read(file) == []
        return
    with pytest.raises(DatasetError, match=r"is damaged or cut short: "):
        read(file)


def test_json_lines_are_read_by_their_keys(tmp_path):
    lines = [
        f'{{"w": 1, "tail": "{t}", "head": "{h}", "relation": "{r}"}}\n' for h, r, t in TRIPLES
    ]
    assert read(written(tmp_path, "a.jsonl", "".join(lines))) == TRIPLES
    other = '{"s": 1, "p": "r", "o": "\\u00e9\\t"}\n'
    with pytest.raises(DatasetError, match=r"a\.ndjson line 1 must be .* its tail has a tab"):
        read(written(tmp_path, "a.ndjson", other), columns="s,p,o")
    assert read(written(tmp_path, "b.ndjson", other.replace("\\t", "")), columns="s,p,o") == [
        ("1", "r", "é")
    ]


BAD = {
    "few": ("c\tr\n", "must be a head, a relation and a tail separated by tabs: ['c', 'r']"),
    "many": ("c\tr\td\te\n", "must be a head, a relation and a tail separated by tabs"),
    "empty": ("c\t\td\n", "must be a head, a relation and a tail: its relation is empty"),
    "nul": ("c\tr\0\td\n", "its relation has a tab, a line break or a NUL character"),
    "return": ("c\tr\td\re\n", "its tail has a tab, a line break or a NUL character"),
    "latin": (b"c\tr\t\xe9\n", r"is not UTF-8: b'c\tr\t\xe9\n'"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_is_refused_with_its_number_or_skipped(tmp_path, bad):
    line, reason = BAD[bad]
    line = line if isinstance(line, bytes) else line.encode()
    good = [f"e{n}\tr\te{n + 1}\n".encode() for n in range(5000)]
    file = written(tmp_path, "a.tsv", b"".join([*good[:3000], line, *good[3000:], line]))
    with pytest.raises(DatasetError) as refused:
        read(file, header=False)
    assert f"{file} line 3001 " in str(refused.value)
    assert reason in str(refused.value)
    with pytest.raises(DatasetError, match=r"line 5002 .* \(1 bad lines were skipped before\)"):
        read(file, header=False, skip_bad=1)
    source = read_source(file, read_options({"header": False, "skip_bad": 2}))
    assert len(source.numbered) == 5000
    assert "line 3001" in source.notes[0]
    assert source.notes[1] == "skipped 2 bad lines in all"


def test_an_open_quote_is_refused_and_never_skipped(tmp_path):
    content = 'a,r,b\na,r,"c\n' + "b,r,c\n" * 50_000
    with pytest.raises(DatasetError, match=r"line 2: a double quote is not closed"):
        read(written(tmp_path, "a.csv", content), skip_bad=10)
    assert len(read(written(tmp_path, "a.csv", content), quoted=False)) == 50_002


def test_a_quoted_line_break_is_read_in_a_column_that_is_not_used(tmp_path):
    content = 'head,relation,tail,about\na,r,b,"two\nlines"\nb,r,c,one\n'
    assert read(written(tmp_path, "a.csv", content)) == TRIPLES[:2]


def test_quotes_in_a_tab_separated_file_are_part_of_names_unless_said_otherwise(tmp_path):
    file = written(tmp_path, "a.tsv", '"a"\tr\tb\nb\tr\tc\n')
    source = read_source(file)
    assert source.numbered.entities == ['"a"', "b", "c"]
    assert "1 entities are in double quotes" in source.notes[0]
    assert read(file, quoted=True) == TRIPLES[:2]


def test_a_line_without_end_is_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"line 2 is longer than 2,000,000 bytes"):
        read(written(tmp_path, "a.tsv", b"a\tr\tb\n" + b"x" * 3_000_000))


def test_utf16_is_named(tmp_path):
    with pytest.raises(DatasetError, match="is UTF-16; save it as UTF-8"):
        read(written(tmp_path, "a.tsv", "a\tr\tb\n".encode("utf-16")))


def test_signs_of_control_stay_in_names_and_a_mark_of_order_does_not(tmp_path):
    file = written(
        tmp_path, "a.tsv", b"\xef\xbb\xbfa\x1b[31m\tr\x07\tb\xc2\x85\r\n\r\na\tr\x07\tb\n"
    )
    assert read(file) == [("a\x1b[31m", "r\x07", "b\x85"), ("a", "r\x07", "b")]


values = st.one_of(
    st.sampled_from(
        ["a", "b", "é\\", "", "x\ty", "\ud800", 1, -2, 2**70, 1.5, None, True, [], {}, "1"]
    )
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(values, values, values), min_size=1, max_size=4),
    st.sampled_from([("h", "r", "t"), ("a/b", "~0", '"'), ("", "A", "a"), ("$.x", "[0]", "é")]),
    st.sampled_from(["", "{", "[]", "null", '{"h": "a", "h": "b", "r": "r", "t": "t"}', " "]),
)
def test_json_lines_by_duckdb_are_what_is_read_line_by_line(tmp_path_factory, rows, keys, extra):
    file = tmp_path_factory.mktemp("json") / "a.jsonl"
    lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in rows]
    file.write_text("\n".join([*lines, extra, *lines]))
    columns = Columns(0, 1, 2)
    fast = table_columns.read_json_lines(file, list(keys), columns)
    if fast is not None:
        assert named(fast) == named(tables.read_objects(file, list(keys), columns, Report()))


def test_clean_json_lines_are_read_by_duckdb(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "read_objects", lambda *_: pytest.fail("read line by line"))
    lines = [f'{{"a/b": "{h}", "~r": "{r}", "t": "{t}", "w": [1]}}\n' for h, r, t in TRIPLES]
    file = written(tmp_path, "a.jsonl", "".join(lines))
    assert read(file, columns="a/b,~r,t") == TRIPLES
