"""The embedded graph: countries, cities, languages, currencies and time zones of the real world.

borders(country, country)     capital(country, city)        continent(country, continent)
currency(country, currency)   speaks(country, language)     city_in(city, country)
near(city, city)              uses_timezone(city, time zone)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.files import atomic_folder
from lmpnn_kge.graph.formats.libkge import IDS, STRINGS
from lmpnn_kge.graph.formats.libkge_write import write_dataset
from lmpnn_kge.graph.geonames import KNOWN_VERSION, LANGUAGES, City, World, read_world
from lmpnn_kge.graph.hold_out import hold_out
from lmpnn_kge.graph.numbered import Numbered
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.graph.vocabulary import Vocabulary, name_rows

NAME = "geography"

#: The first line of `dataset.yaml`, with the credit that the licence of GeoNames asks for.
HEADER = "# Facts from GeoNames (geonames.org, CC BY 4.0) through"

RELATIONS = (
    "borders", "capital", "city_in", "continent", "currency", "near", "speaks", "uses_timezone"
)  # fmt: skip

#: Every country has its capital, this many of its largest cities, and all cities of this size.
CITIES, LARGE = 10, 500_000

#: A city this close to a larger one of its country counts as part of it; in km.
SUBURB = 20

#: Cities within this distance are near each other; in km.
NEAR = 100

#: Relations that hold in both directions.
SYMMETRIC = ("borders", "near")

#: The split of a fact depends only on this and on the fact.
SEED = "geography"

#: Currencies shared by several countries: their ISO 4217 codes do not begin with a country code.
ISSUERS = {
    "XAF": "Central Africa", "XCD": "East Caribbean", "XCG": "Caribbean", "XOF": "West Africa",
    "XPF": "Pacific",
}  # fmt: skip

Thing = tuple[str, str]  # its class, and what tells it from others of that class


def write_geography(folder: str | Path) -> Path:
    """Write the graph as a LibKGE dataset folder, replacing an older one."""
    world = read_world()
    cities = [city for code in world.countries for city in _largest(world, code)]
    facts = [*_facts_of_countries(world), *_facts_of_cities(cities)]
    if missing := set(RELATIONS).difference(relation for _, relation, _ in facts):
        raise DatasetError(
            f"{world.source} has no facts about {', '.join(sorted(missing))}; {KNOWN_VERSION}"
        )
    names = _names(world, cities, {thing for head, _, tail in facts for thing in (head, tail)})
    triples = [(names[head], relation, names[tail]) for head, relation, tail in facts]
    triples += [(tail, relation, head) for head, relation, tail in triples if relation in SYMMETRIC]
    graph = Numbered.of(triples).sorted()
    labels = [relation.replace("_", " ") for relation in graph.relations]
    vocabulary = Vocabulary(graph.entities, graph.relations, relation_labels=[*labels])
    with atomic_folder(Path(folder), may_replace=_is_geography, or_same=True) as aside:
        write_dataset(aside, NAME, vocabulary, hold_out(graph, SEED), _header(world))
    return Path(folder)


def is_current(folder: Path) -> bool:
    """Whether a folder is this graph, from the facts that are installed now."""
    if not _is_geography(folder):
        return False
    return (folder / "dataset.yaml").read_bytes().startswith(_header(read_world()).encode())


def _header(world: World) -> str:
    return f"{HEADER} {world.source} (MIT)"


def _largest(world: World, country: str) -> list[City]:
    """The capital and the largest other cities, each name once."""
    capital = world.capitals.get(country)
    names = {capital.name} if capital else set()
    kept: list[City] = []
    for city in world.cities[country]:
        if city is capital or (
            (len(kept) < CITIES or city.population >= LARGE)
            and city.name not in names
            and all(city.distance(larger) >= SUBURB for larger in kept)
        ):
            kept.append(city)
            names.add(city.name)
    return kept


def _thing(city: City) -> Thing:
    return "city", f"{city.name}, {city.country}"


def _facts_of_countries(world: World) -> Iterator[tuple[Thing, str, Thing]]:
    for code, country in world.countries.items():
        here = ("country", code)
        for other in country.neighbours:
            if other in world.countries:
                yield here, "borders", ("country", other)
        if code in world.capitals:
            yield here, "capital", _thing(world.capitals[code])
        if country.continent in world.continents:
            yield here, "continent", ("continent", country.continent)
        if country.currency:
            yield here, "currency", ("currency", country.currency)
        for language in country.languages:
            if language in LANGUAGES:
                yield here, "speaks", ("language", language)


def _facts_of_cities(cities: Sequence[City]) -> Iterator[tuple[Thing, str, Thing]]:
    northward = sorted(cities, key=lambda city: city.point[2])
    for place, city in enumerate(northward):
        yield _thing(city), "city_in", ("country", city.country)
        if city.timezone:
            yield _thing(city), "uses_timezone", ("timezone", city.timezone)
        for other in northward[place + 1 :]:
            if other.point[2] - city.point[2] > NEAR:
                break
            if city.distance(other) <= NEAR:
                yield _thing(city), "near", _thing(other)


def _names(world: World, cities: Sequence[City], things: Collection[Thing]) -> dict[Thing, str]:
    """The ids of things: a name, with more in brackets if others have an equal claim to it."""
    found = {
        thing: (name, more, claim)
        for thing, name, more, claim in _descriptions(world, cities)
        if thing in things
    }
    claims: dict[str, list[int]] = defaultdict(list)
    for name, _, claim in found.values():
        claims[name].append(claim)
    names = {}
    for thing, (name, more, claim) in found.items():
        wins = claim == max(claims[name]) and claims[name].count(claim) == 1
        names[thing] = name if wins else f"{name} ({more})"
    try:
        name_rows(list(names.values()))
    except ValueError as error:
        raise DatasetError(
            f"{world.source} has ambiguous names: {error}; {KNOWN_VERSION}"
        ) from error
    return names


def _descriptions(world: World, cities: Sequence[City]) -> Iterator[tuple[Thing, str, str, int]]:
    """Things with their name, the text to add in brackets, and their claim to the bare name.

    Nobody doubts which London is meant, but neither of the two Valencias is just Valencia: among
    cities only a capital that is the largest of its name has a claim.
    """
    for code, name in world.continents.items():
        yield ("continent", code), name, "continent", 3
    for code, country in world.countries.items():
        yield ("country", code), country.name, "country", 3
        issuer = world.countries.get(country.currency[:2])
        issued_by = issuer.name if issuer else ISSUERS.get(country.currency, country.currency)
        currency = country.currency_name or country.currency
        yield ("currency", country.currency), currency, issued_by, 0
    for code, name in LANGUAGES.items():
        yield ("language", code), name, "language", 2
    largest = {city.name: city for city in sorted(cities, key=lambda city: city.population)}
    for city in cities:
        country = world.countries[city.country]
        more = "city" if city.name == country.name else country.name
        prominent = city is largest[city.name] and city is world.capitals.get(city.country)
        yield _thing(city), city.name, more, int(prominent)
        yield ("timezone", city.timezone), city.timezone, "time zone", 2


def _is_geography(folder: Path) -> bool:
    """Whether a folder is one that we wrote, and that nobody has added anything to."""
    files = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    ours = {"dataset.yaml", *(f"{key}.del" for key in (*IDS, *STRINGS, *SPLITS))}
    return files == ours and (folder / "dataset.yaml").read_bytes().startswith(HEADER.encode())
