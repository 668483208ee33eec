"""A check of RDF/XML before it is parsed: entities and nesting can make a small file explode."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO
from xml.parsers import expat

from lmpnn_kge.errors import DatasetError

#: Elements within elements, and attributes of one: the parser takes the square of their number.
MAX_DEPTH, MAX_ATTRIBUTES = 1_000, 1_000

#: The start of an entity's declaration, and a whole one that stands for the start of an IRI.
#: It is searched in the bytes: another parser of declarations might see other ones.
ENTITY = b"<!ENTITY"
SHORT = re.compile(
    rb"<!ENTITY\s+[\w.:-]{1,200}\s+(\"[^\"&%<]{0,1000}\"|'[^'&%<]{0,1000}')\s{0,99}>"
)
LONGEST = 2_000

BLOCK = 1 << 16


def check_xml(file: Path, stream: IO[bytes]) -> None:
    """DatasetError if the parser would take far more time or memory than the file has bytes."""
    checker = _Checker(file)
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = checker.start, checker.end
    rest = b""
    try:
        while block := stream.read(BLOCK):
            rest = checker.entities(rest + block)
            parser.Parse(block, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DatasetError(f"{file} line {error.lineno} is not readable RDF: {reason}") from error
    checker.entities(rest + bytes(LONGEST))


class _Checker:
    def __init__(self, file: Path):
        self.file, self.depth = file, 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise DatasetError(f"{self.file} nests more than {MAX_DEPTH:,} elements")
        if len(attributes) > MAX_ATTRIBUTES:
            raise DatasetError(
                f"{self.file} has an element with more than {MAX_ATTRIBUTES:,} attributes"
            )

    def end(self, name: str) -> None:
        self.depth -= 1

    def entities(self, text: bytes) -> bytes:
        """Check the entities that a text declares; returns its end, which may begin another one."""
        checked = max(0, len(text) - LONGEST)
        place = text.find(ENTITY)
        while 0 <= place < checked:
            if not SHORT.match(text, place):
                raise DatasetError(
                    f"{self.file} declares an entity that is long, or made of others or of another "
                    "file, which no graph needs"
                )
            place = text.find(ENTITY, place + 1)
        return text[checked:]
