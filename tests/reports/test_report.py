"""Reports say what the files of runs say, in Markdown as in HTML, and nothing in them runs."""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lmpnn_kge.errors import LmpnnError, printable
from lmpnn_kge.methods.calibration import Bin, Reliability
from lmpnn_kge.methods.results import Results
from lmpnn_kge.methods.text_table import Table, Text
from lmpnn_kge.query.patterns import BETAE, NEGATIVE, POSITIVE
from lmpnn_kge.reports.document import Document, Figure, Heading, to_html, to_markdown
from lmpnn_kge.reports.plots import Curve, plot_curves, plot_missing, plot_reliability, plot_types
from lmpnn_kge.reports.published import published
from lmpnn_kge.reports.record import read_run
from lmpnn_kge.reports.report import make_report, write_report
from lmpnn_kge.reports.sections import MOST_PANELS, Section

from ..edited import edit_settings, signed
from ..toy_runs import cli, partials, train_tiny

HOSTILE = "<img src=x onerror=alert(1)> | *a* _b_ `c` [d](http://e.f) $g$ & \\| #"


RELIABILITY = Reliability((Bin(0.1, 0.2, 500.0), Bin(0.9, 0.7, 250.0)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory, toy_queries) -> Path:
    """A real run, of two epochs and five types."""
    return train_tiny(toy_queries, tmp_path_factory.mktemp("report") / "trained").folder.path


@pytest.fixture
def copy(trained, tmp_path):
    """A copy of the run with other contents."""

    def make(name="run", graph=None, mrr=None, queries=None, provenance=None, model=None, **more):
        folder = tmp_path / name
        shutil.copytree(trained, folder)
        facts = json.loads((folder / "run.json").read_text())
        facts["queries"]["graph"] = graph or facts["queries"]["graph"]
        facts["queries"]["sha256"] = queries or facts["queries"]["sha256"]
        facts["queries"]["provenance"] = provenance or facts["queries"]["provenance"]
        facts["checkpoint"]["model"] = model or facts["checkpoint"]["model"]
        (folder / "run.json").write_text(json.dumps(signed(facts | more)))
        if mrr is not None:
            (folder / "test.json").write_text(json.dumps(content(mrr)))
        return folder

    return make


@pytest.fixture
def sketched(monkeypatch):
    """Plots that are not drawn to the end, which takes the most of the time of a report."""
    monkeypatch.setattr("lmpnn_kge.reports.plots._svg", lambda figure: "<svg></svg>")


def content(mrr):
    """Results as `evaluate --json` prints them."""

    def mean(names):
        return sum(mrr[n] for n in names) / len(names) if set(names) <= set(mrr) else None

    types = {
        name: {
            "mrr": value,
            "hits@1": value / 2,
            "hits@10": value,
            "queries": 9,
            "missing_edges": {"1": {"mrr": value, "answers": 7}, "2": {"mrr": 0.0, "answers": 2}},
        }
        for name, value in mrr.items()
    }
    return {"split": "test", "types": types, "A_P": mean(POSITIVE), "A_N": mean(NEGATIVE)}


def results(mrr):
    return Results.from_json(content(mrr), "results")


def paper_row(value):
    return dict.fromkeys(BETAE, value)


class Page(HTMLParser):
    """The tags of a page, the text of its blocks, and its tables as lists of rows."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.ids, self.links, self.texts, self.tables = [], [], [], [], []
        self.inside = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for key, value in attributes if key == "id"]
        self.links += [value for key, value in attributes if re.search("href|src|action", key)]
        self.inside.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag in ("h1", "h2", "h3", "p", "figcaption"):
            self.texts.append("")

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if {"th", "td"} & set(self.inside):
            self.tables[-1][-1][-1] += data
        elif {"h1", "h2", "h3", "p", "figcaption"} & set(self.inside):
            self.texts[-1] += data


def markdown_page(markdown):
    """The same of Markdown, as a reader of it sees it; a picture is its caption."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    texts, tables, inside = [], [], None
    for token in tokens:
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in ("th_open", "td_open"):
            inside = "cell"
        elif token.type in ("th_close", "td_close"):
            inside = None
        elif token.type == "inline":
            allowed = (
                "text",
                "text_special",
                "code_inline",
                "strong_open",
                "strong_close",
                "image",
            )
            assert {child.type for child in token.children} <= set(allowed), token.content
            text = "".join(child.content for child in token.children)
            tables[-1][-1].append(text) if inside else texts.append(text)
        else:
            assert token.type.split("_")[0] in (
                "heading",
                "paragraph",
                "thead",
                "tbody",
                "table",
                "tr",
            )
    return texts, tables


def row_of(tables, name, place=0):
    """The cells of a row by its header."""
    found = [(table[0], row) for table in tables for row in table[1:] if row[0] == name]
    header, row = found[place]
    return dict(zip(header[1:], row[1:], strict=True))


def written(*folders, out, runs=None, **options):
    """The tables of a report's page, and its text."""
    file = write_report(runs or folders, out, **options)
    page = Page(file.read_text(encoding="utf-8"))
    return page.tables, "\n".join(page.texts)


def test_a_report_has_the_numbers_of_test_json(trained, tmp_path):
    tables, _ = written(trained, out=tmp_path / "out")
    found = json.loads((trained / "test.json").read_text())["types"]
    row = row_of(tables, "trained", place=1)
    assert row == {name: f"{100 * one['mrr']:.1f}" for name, one in found.items()}
    assert row_of(tables, "trained, Hits@3")["2p"] == f"{100 * found['2p']['hits@3']:.1f}"
    one_missing = found["2p"]["missing_edges"]["1"]
    assert row_of(tables, "trained, 1 missing")["2p"] == f"{100 * one_missing['mrr']:.1f}"
    assert row_of(tables, "answers, 1 missing")["2p"] == str(one_missing["answers"])


def test_a_report_shows_how_well_numbers_of_answers_are_predicted(trained, tmp_path):
    tables, text = written(trained, out=tmp_path / "out")
    found = json.loads((trained / "test.json").read_text())["counting"]["predicted"]
    assert "Numbers of answers" in text
    row = row_of(tables, "trained: MAPE, predicted")
    assert row == {name: f"{100 * one['error']:.1f}" for name, one in found.items()}


def test_a_report_says_how_and_with_what_a_run_was_made(sketched, trained, tmp_path):
    tables, text = written(trained, out=tmp_path / "out")
    facts = json.loads((trained / "run.json").read_text())
    assert row_of(tables, "checkpoint.sha256") == {"trained": facts["checkpoint"]["sha256"]}
    assert row_of(tables, "hidden") == {"trained": "8"}
    overview = row_of(tables, "trained")
    assert (overview["backbone"], overview["graph"]) == ("RotatE", "toykg")
    assert (overview["device"], overview["precision"]) == (facts["device"], "fp32")
    assert overview["epochs"] == "2 of 2"
    assert re.fullmatch(r"[\d,]+", overview["queries/s"])
    assert "sampled here" in text


def test_markdown_and_html_say_the_same(copy, tmp_path):
    runs = [copy("one", mrr=paper_row(0.2), graph="FB15k-237"), copy("two", command=HOSTILE)]
    page = Page(write_report(runs, tmp_path / "out", title=HOSTILE).read_text(encoding="utf-8"))
    texts, tables = markdown_page((tmp_path / "out" / "report.md").read_text(encoding="utf-8"))
    assert tables == page.tables
    assert texts == page.texts


@settings(max_examples=200, deadline=None)
@given(
    (
        st.text(min_size=1, max_size=30)
        | st.text("#-+=1.) _*`|\\<>&[]:/@w~$!", min_size=1)
        | st.just(HOSTILE)
    ).filter(str.strip)
)
@example("__0__")
def test_whatever_a_text_holds_it_is_shown_as_it_is(text):
    table = Table([text, text], [[Text(text, code=True), Text(text, strong=True)]])
    document = Document(text, [Heading(text), text, table])
    seen = printable(text.strip())
    page = Page(to_html(document))
    texts, tables = markdown_page(to_markdown(document, lambda figure: figure.name))
    assert page.texts == texts == [seen] * 3
    assert page.tables == tables == [[[seen] * 2] * 2]


def test_nothing_in_a_page_runs_or_is_loaded_from_elsewhere(copy, tmp_path):
    run = copy(
        "<b>run", mrr={"1p": 0.5, HOSTILE: 0.25}, made_by="</code></table><script>1</script>"
    )
    html = write_report([run], tmp_path / "out.html", title="</title><script>").read_text()
    page = Page(html)
    assert not {"script", "img", "link", "iframe", "object", "b", "a"} & set(page.tags)
    assert page.links
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\((?!#)|@import", html)
    assert len(set(page.ids)) == len(page.ids)
    assert "default-src 'none'" in html
    assert list(tmp_path.glob("out*")) == [tmp_path / "out.html"]


def test_the_same_runs_give_the_same_bytes(trained, tmp_path):
    for name in ("one", "two"):
        write_report([trained], tmp_path / name)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert one == two
    assert set(one) >= {"report.html", "report.md", "report-types.svg", "report-training.svg"}


@pytest.mark.parametrize(
    ("model", "backbone"), [("RotatE", "RotatE 256D"), ("Other", "ComplEx 2000D")]
)
def test_the_published_row_stands_beneath_without_a_difference_if_queries_are_others(
    sketched, copy, tmp_path, model, backbone
):
    run = copy(graph="fb15k-237", mrr=paper_row(0.5), model=model)
    tables, text = written(run, out=tmp_path / "out")
    shown = row_of(tables, f"published, on other queries: LMPNN ({backbone})")
    (row,) = {r.name: r for r in published("FB15k-237") if r.name == f"LMPNN ({backbone})"}.values()
    assert shown["1p"] == str(row.mrr["1p"])
    assert (shown["A_P"], shown["A_N"]) == (str(row.positive), str(row.negative))
    assert row_of(tables, "ConE")["3i"] == "47.3"
    assert "they are not the published ones" in text
    assert "run − published" not in str(tables)


def test_imported_queries_are_not_called_sampled(sketched, copy, tmp_path):
    run = copy(graph="NELL-betae", mrr=paper_row(0.2), provenance={"imported": "NELL-betae"})
    tables, text = written(run, out=tmp_path / "out")
    assert "imported from the folder NELL-betae" in text
    assert "sampled" not in text
    assert row_of(tables, "run − published")["1p"] == "−40.6"
    assert row_of(tables, "published: LMPNN (ComplEx 2000D)")["1p"] == "60.6"


def test_a_graph_without_published_numbers_is_compared_only_when_asked(sketched, copy, tmp_path):
    run = copy(mrr=paper_row(0.5))
    assert "published:" not in str(written(run, out=tmp_path / "out")[0])
    cli("report", run, "-o", tmp_path / "asked", "--against", "fb15k")
    text = (tmp_path / "asked" / "report.md").read_text()
    table = text.partition("## Answering")[2].partition("###")[0]
    assert "LMPNN" not in table, "numbers on another graph are not in the table of the runs"
    section = text.partition("### Published on FB15k")[2].partition("##")[0]
    assert "| LMPNN (ComplEx 2000D)" in section
    assert "another graph than toykg: the numbers cannot be compared" in section
    assert (
        "choose from: FB15k, FB15k-237, NELL" in cli("report", run, "--against", "x", code=2).stderr
    )


def test_the_best_of_each_column_is_bold(sketched, copy, tmp_path):
    runs = (
        copy("one", mrr={"1p": 0.5, "2p": 0.1}),
        copy("two", mrr={"1p": 0.2, "2p": 0.1, "3p": 0.3}),
    )
    write_report(runs, tmp_path / "out.md")
    lines = (tmp_path / "out.md").read_text().splitlines()
    assert [
        re.split(r"\s*\|\s*", line)[2:5]
        for line in lines
        if re.match(r"\| (one|two) .*\d\.\d\D", line)
    ][:2] == [
        ["**50.0**", "**10.0**", "–"],
        ["20.0", "**10.0**", "**30.0**"],
    ]
    write_report(runs[:1], tmp_path / "alone.md")
    assert "**" not in (tmp_path / "alone.md").read_text()


def test_runs_on_other_queries_have_tables_of_their_own(sketched, copy, tmp_path):
    runs = [copy("one", mrr={"1p": 0.5}), copy("two", mrr={"1p": 0.2}, queries="0" * 64)]
    tables, text = written(*runs, out=tmp_path / "out")
    assert "2 different sets of queries" in text
    assert "Answering queries on toykg: two\n" in text
    mrr = [table for table in tables if table[0] == ["", "1p"] and len(table) == 2]
    assert [["one", "50.0"]] in [table[1:] for table in mrr]
    assert [["two", "20.0"]] in [table[1:] for table in mrr]
    assert {"report-types.svg", "report-types-2.svg"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }


def test_types_beyond_the_paper_have_a_table_of_their_own(sketched, copy, tmp_path):
    tables, _ = written(copy(mrr={"mine": 0.1, "2m": 0.2, "1p": 0.3}), out=tmp_path / "out")
    assert [["", "1p"], ["run", "30.0"]] in tables
    assert [["", "2m", "mine"], ["run", "20.0", "10.0"]] in tables


def test_a_run_that_is_not_finished_is_a_row_that_says_so(sketched, copy, tmp_path):
    done, stopped, begun = copy("done"), copy("stopped"), copy("begun")
    for folder in (stopped, begun):
        (folder / "test.json").unlink()
        edit_settings(folder, lambda text: text.replace("epochs: 2", "epochs: 9"))
    (begun / "metrics.jsonl").unlink()
    tables, _ = written(done, stopped, begun, out=tmp_path / "out")
    name = "stopped (not finished: 2 of 9 epochs)"
    assert set(row_of(tables, name, place=1).values()) == {"–"}
    assert row_of(tables, "begun (not finished: 0 of 9 epochs)")["best"] == "–"
    _, text = written(begun, out=tmp_path / "alone")
    assert "There are no results on test yet." in text
    assert "No epoch is finished yet." in text


def test_a_run_that_lost_patience_is_finished(copy):
    folder = copy()
    (folder / "test.json").unlink()
    edit_settings(
        folder,
        lambda text: re.sub("patience: .*", "patience: 1", text.replace("epochs: 2", "epochs: 9")),
    )
    first, second = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    second = signed(second | {"valid": first["valid"]})
    (folder / "metrics.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    assert read_run(folder).state == "no results on test"
    assert read_run(folder).best == 1


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("run.json", "{", "not a run folder"),
        ("config.yaml", "hidden: many", "config.yaml is damaged"),
        ("test.json", "[]", "test.json is damaged"),
        ("test.json", '{"types": {}, "A_P": null, "A_N": null}', "holds no metrics"),
        ("test.json", json.dumps(content({"1p": float("nan")})), "nan is not a number"),
        ("test.json", json.dumps(content({"1p": 7})), "not between 0 and 1"),
        ("test.json", json.dumps(content({"1p": True})), "not a number"),
        ("metrics.jsonl", '{"epoch": 1\n', "metrics.jsonl is damaged"),
        ("metrics.jsonl", '{"epoch": 1, "loss": NaN, "queries_per_second": 1}\n', "not a number"),
        ("metrics.jsonl", '{"epoch": 1e999, "loss": 1, "queries_per_second": 1}\n', "is damaged"),
        ("metrics.jsonl", "[1]\n", "metrics.jsonl is damaged"),
        ("test-search.json", "[]", "test-search.json is damaged"),
        ("edges.json", "[]", "edges.json is damaged"),
        ("edges.json", '{"inputs": {}}', "edges.json is damaged"),
    ],
)
def test_a_damaged_run_is_one_line_and_nothing_is_written(copy, tmp_path, file, content, message):
    run = copy()
    (run / file).write_text(content)
    assert message in cli("report", run, "-o", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()


def test_runs_of_the_same_name_get_distinct_names(sketched, copy, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    runs = [copy("a/run"), copy("b/run")]
    tables, text = written(*runs, runs[0], out=tmp_path / "out")
    assert "Report on a/run, b/run" in text
    assert [row[0] for row in tables[0]] == ["", "a/run", "b/run"]


def test_settings_that_differ_come_first(sketched, copy, tmp_path):
    one, two = copy("one"), copy("two")
    edit_settings(two, lambda text: text.replace("hidden: 8", "hidden: 9"))
    tables, _ = written(one, two, out=tmp_path / "out")
    assert [["", "one", "two"], ["hidden", "8", "9"]] in tables
    assert row_of(tables, "seed") == {"one": "0", "two": "0"}


def test_a_program_adds_rows_and_sections(sketched, copy, tmp_path):
    answers = Table(["answer", "score"], [["Poland", "0.9"]], "borders(Germany, ?)")
    picture = Figure("graph", "<svg xmlns='x'><style>path { fill: red }</style></svg>", "A graph.")
    tables, text = written(
        copy(mrr={"1p": 0.5}),
        out=tmp_path / "out",
        beside={"frequency": results({"1p": 0.1})},
        sections=[Section("Questions", ["It was asked.", answers, picture])],
    )
    frequency = "frequency (its queries are not recorded)"
    assert [["", "1p"], ["run", "50.0"], [frequency, "10.0"]] in tables
    assert [["answer", "score"], ["Poland", "0.9"]] in tables
    assert text.index("Questions") < text.index("It was asked.") < text.index("Training")
    html = (tmp_path / "out" / "report.html").read_text()
    assert "<style>#graph {path { fill: red }}</style>" in html, "its style is its own"


def test_runs_can_be_named_and_a_section_can_be_the_first(sketched, copy, tmp_path):
    run = copy(mrr={"1p": 0.5})
    sections = [Section("Before", ["One."], first=True), Section("After", ["Two."])]
    tables, text = written(out=tmp_path / "out", runs={"ε = 0": run}, sections=sections)
    assert [["", "1p"], ["ε = 0", "50.0"]] in tables
    assert text.index("Before") < text.index("Runs") < text.index("After")


def test_many_runs_have_tables_and_no_pictures(sketched, copy, tmp_path):
    run, few = copy(mrr={"1p": 0.5}), MOST_PANELS
    for count, drawn in ((few, {"types", "training"}), (few + 1, set())):
        names = {f"run {number}": run for number in range(count)}
        document = make_report(names)
        assert {figure.name for figure in document.figures} - {"missing"} == drawn


def test_what_evaluate_printed_is_a_row_beside_runs(sketched, copy, here):
    run = copy(mrr={"1p": 0.5})
    (here / "cqd.json").write_text(json.dumps(content({"1p": 0.25})))
    cli("report", run, "-o", "out", "--beside", "CQD=cqd.json")
    text = (here / "out" / "report.md").read_text()
    assert re.search(r"\| CQD \(its queries are not recorded\) +\| +25.0 +\|", text)
    assert "NAME=FILE" in cli("report", run, "--beside", "cqd.json", code=2).stderr
    assert "cannot be read" in cli("report", run, "--beside", "CQD=none.json", code=2).stderr
    (here / "cqd.json").write_text("{}")
    stderr = cli("report", run, "--beside", "CQD=cqd.json", code=2).stderr
    assert "cqd.json is damaged: it holds no metrics (no 'types')" in stderr


def test_a_report_is_in_its_run_folder_by_default(sketched, copy, here):
    one, two = copy("one"), copy("two")
    assert cli("report", one).stdout.split() == ["report", str(one / "report" / "report.html")]
    cli("report", one, two)
    assert (here / "report" / "report.html").is_file()
    cli("report", one, "-o", "a b/mine.md")
    assert "](mine-types.svg)" in (here / "a b" / "mine.md").read_text()
    assert {path.suffix for path in (here / "a b").iterdir()} == {".md", ".svg"}
    assert not partials(here)


def test_a_place_that_cannot_be_written_is_one_line(sketched, copy, tmp_path):
    run = copy()
    (tmp_path / "file").write_text("mine")
    assert "is a file" in cli("report", run, "-o", tmp_path / "file", code=2).stderr
    assert "cannot be" in cli("report", run, "-o", tmp_path / "file" / "x.html", code=2).stderr
    (tmp_path / "out" / "report.md").mkdir(parents=True)
    assert "cannot be written" in cli("report", run, "-o", tmp_path / "out", code=2).stderr
    assert (tmp_path / "file").read_text() == "mine"
    assert not partials(tmp_path)
    with pytest.raises(LmpnnError, match="needs a run"):
        make_report([])


def with_reliability(mrr):
    return {**content(mrr), "reliability": RELIABILITY.to_json()}


def edges_of(run, **changes):
    """edges.json as a fit writes it, without what was fitted."""
    sha256 = json.loads((run / "run.json").read_text())["checkpoint"]["sha256"]
    raw = Reliability((Bin(0.9, 0.1, 750.0),))
    measured = {"calibrated": RELIABILITY.to_json(), "raw": raw.to_json()}
    inputs = {"checkpoint": sha256}
    return {"inputs": inputs, "fitted": {"reliability": measured}} | changes


def test_methods_that_were_evaluated_on_a_run_are_rows_beside_it(sketched, copy, tmp_path):
    run, other = copy("one", mrr={"1p": 0.5}), copy("two", mrr={"1p": 0.2})
    (run / "test-hybrid.json").write_text(json.dumps(content({"1p": 0.7})))
    (run / "test-search.json").write_text(json.dumps(content({"1p": 0.6})))
    (run / "test-merge.json").write_text(json.dumps(content({"1p": 0.1})))  # not a method
    tables, text = written(run, other, out=tmp_path / "out")
    rows = [["one", "50.0"], ["one, search", "60.0"], ["one, hybrid", "70.0"], ["two", "20.0"]]
    assert [["", "1p"], *rows] in tables
    assert row_of(tables, "one, hybrid, Hits@10")["1p"] == "70.0"
    assert row_of(tables, "one, search, 1 missing")["1p"] == "60.0"
    assert "Probabilities" not in text
    beside = {"one, hybrid": results({"1p": 0.8})}
    tables, _ = written(run, out=tmp_path / "again", beside=beside)
    label = "one, hybrid (its queries are not recorded)"
    rows = [["one", "50.0"], ["one, search", "60.0"], [label, "80.0"]]
    assert [["", "1p"], *rows] in tables, "a row that is given replaces the one of the folder"


def test_the_reliability_of_answers_and_of_edges_is_shown(copy, tmp_path):
    run = copy(mrr={"1p": 0.5})
    (run / "test-hybrid.json").write_text(json.dumps(with_reliability({"1p": 0.7})))
    (run / "edges.json").write_text(json.dumps(edges_of(run)))
    tables, text = written(run, out=tmp_path / "out")
    name = "expected calibration error"
    row = row_of(tables, "run, hybrid", place=-1)
    assert row == {name: "0.1333", "hold, percent": "36.7", "claims": "750"}
    assert row_of(tables, "run, calibrated")[name] == "0.1333"
    assert row_of(tables, "run, sigmoids of scores")[name] == "0.8000"
    assert text.index("Answering") < text.index("Probabilities") < text.index("Training")
    svg = (tmp_path / "out" / "report-reliability-answers.svg").read_text()
    assert "run, hybrid, error 13.3 %" in svg
    svg = (tmp_path / "out" / "report-reliability-edges.svg").read_text()
    assert "run, sigmoids of scores, error 80.0 %" in svg


def test_edges_that_were_fitted_to_another_embedding_are_not_shown(sketched, copy, tmp_path):
    run = copy()
    edges = edges_of(run, inputs={"checkpoint": "0" * 64})
    (run / "edges.json").write_text(json.dumps(edges))
    assert "Probabilities" not in written(run, out=tmp_path / "out")[1]


def test_a_report_needs_no_torch(trained, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "test-hybrid.json").write_text(json.dumps(with_reliability({"1p": 0.7})))
    (run / "edges.json").write_text(json.dumps(edges_of(run)))
    code = """
import sys
sys.modules |= dict.fromkeys(("torch", "duckdb", "safetensors"))
from lmpnn_kge.cli import main
main(sys.argv[1:])
"""
    arguments = ["report", str(run), "-o", str(tmp_path / "out.html")]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)
    assert "sigmoids of scores" in (tmp_path / "out.html").read_text()


@pytest.mark.parametrize("name", ["_hidden", "$x$<&>", "名前", "a" * 300, ""])
def test_plots_take_any_name(name):
    curve = Curve(name, {1: 2.0, 2: 1.0}, {"A_P": {1: 0.1, 2: 0.2}}, 2)
    pictures = [
        plot_curves([curve, Curve("other", {1: 1.0})]),
        plot_types(["1p", name], {name: {"1p": 0.5}, "other": {name: 0.1}}, {name: {"1p": 0.3}}),
        plot_missing(["2p", name], {name: {"1 missing": {"2p": 0.2}, "2 missing": {}}}),
        plot_reliability({name: RELIABILITY, "other": RELIABILITY}),
    ]
    for svg in pictures:
        assert svg.startswith("<svg")
        assert "currentColor" in svg
        assert "Date" not in svg
        assert "other" in svg or svg is pictures[2]


def test_a_picture_of_one_epoch_and_of_one_type_is_drawn():
    assert "<svg" in plot_curves([Curve("run", {1: 1.0})])
    assert "<svg" in plot_types(["1p"], {"run": {"1p": 0.5}})


def test_a_reliability_diagram_names_its_errors_and_writes_no_formulas():
    svg = plot_reliability({"calibrated": RELIABILITY})
    assert "calibrated, error 13.3 %" in svg
    assert "mathdefault" not in svg
    assert svg == plot_reliability({"calibrated": RELIABILITY})


# Rows that must not stand in one table


def origin(run, **changes):
    """The origin of results that were measured on the queries of a run."""
    source = read_run(run).provenance
    own = {"queries": source.queries.sha256, "graph": source.graph, "limit": None}
    fixed = {"method": "cqd", "settings": {"beam": 2}, "checkpoint": "0" * 64}
    fixed |= {"graph_name": "toykg", "versions": {"torch": "2"}}
    return fixed | own | changes


def measured(run, mrr, **changes):
    return Results.from_json(content(mrr) | {"origin": origin(run, **changes)}, "results")


def test_results_of_the_same_queries_stand_beside_a_run(sketched, copy, tmp_path):
    run = copy(mrr={"1p": 0.5})
    write_report([run], tmp_path / "out.md", beside={"CQD": measured(run, {"1p": 0.7})})
    text = (tmp_path / "out.md").read_text()
    assert re.search(r"\| CQD +\| +\*\*70\.0\*\* \|", text)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"graph": "0" * 64, "graph_name": "FB15k-237"}, "another graph: FB15k-237"),
        ({"queries": "0" * 64}, "it was measured on other queries over toykg"),
        ({"limit": 50}, "it ranks at most 50 queries per type, not all queries"),
    ],
)
def test_results_of_something_else_are_refused_with_the_reason(copy, here, changes, reason):
    run = copy(mrr={"1p": 0.5})
    printed = content({"1p": 0.25}) | {"origin": origin(run, **changes)}
    (here / "cqd.json").write_text(json.dumps(printed))
    stderr = cli("report", run, "-o", "out", "--beside", "CQD=cqd.json", code=2).stderr
    assert "'CQD' cannot stand beside run: " in stderr
    assert reason in stderr
    assert "evaluate it on the queries of the run with --queries DIR" in stderr
    assert not (here / "out").exists()


def test_results_of_another_split_or_of_fewer_queries_are_refused(copy):
    run = copy(mrr={"1p": 0.5})
    valid = content({"1p": 0.5}) | {"split": "valid"}
    with pytest.raises(LmpnnError, match="it was measured on valid, not on test"):
        make_report([run], beside={"CQD": Results.from_json(valid, "cqd.json")})
    fewer = content({"1p": 0.5})
    fewer["types"]["1p"]["queries"] = 5
    with pytest.raises(LmpnnError, match="it ranks 5 queries of the type 1p, not 9"):
        make_report([run], beside={"CQD": Results.from_json(fewer, "cqd.json")})


def test_results_of_unknown_queries_are_never_the_best(sketched, copy, tmp_path):
    runs = [copy("one", mrr={"1p": 0.5}), copy("two", mrr={"1p": 0.2})]
    write_report(runs, tmp_path / "out.md", beside={"CQD": results({"1p": 0.9})})
    text = (tmp_path / "out.md").read_text()
    assert "**50.0**" in text
    assert "**90.0**" not in text


def test_results_stand_beside_the_runs_with_the_same_queries(sketched, copy, tmp_path):
    runs = [copy("one", mrr={"1p": 0.5}), copy("two", mrr={"1p": 0.2}, queries="0" * 64)]
    beside = {"CQD": measured(runs[0], {"1p": 0.7}, queries="0" * 64)}
    tables, _ = written(*runs, out=tmp_path / "out", beside=beside)
    assert [["", "1p"], ["one", "50.0"]] in tables
    assert [["", "1p"], ["two", "20.0"], ["CQD", "70.0"]] in tables


def test_a_method_of_a_run_on_other_queries_is_a_row_without_numbers(sketched, copy, tmp_path):
    run = copy(mrr={"1p": 0.5})
    kept = content({"1p": 0.7}) | {"origin": origin(run, queries="0" * 64)}
    (run / "test-hybrid.json").write_text(json.dumps(kept))
    tables, _ = written(run, out=tmp_path / "out")
    name = "run, hybrid (it was measured on other queries over toykg)"
    assert row_of(tables, name) == {"1p": "–"}


@pytest.mark.parametrize(
    "damage",
    [[], {"method": 3}, {"limit": "many"}, {"limit": True}, {"settings": None}, {"graph": 1}],
)
def test_a_damaged_origin_is_reported(copy, damage):
    run = copy(mrr={"1p": 0.5})
    broken = damage if isinstance(damage, list) else origin(run) | damage
    (run / "test.json").write_text(json.dumps(content({"1p": 0.5}) | {"origin": broken}))
    with pytest.raises(LmpnnError, match=r"test\.json is damaged"):
        read_run(run)
