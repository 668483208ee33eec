"""Names as IRIs, for SPARQL and RDF, and back.

A name that is an absolute IRI is its own IRI. Any other name gets the scheme `kge:`, with every
character percent-encoded that an IRI cannot hold: `Germany` is <kge:Germany>, `/m/0f8l9c` is
<kge:/m/0f8l9c>, and `South Sudan` is <kge:South%20Sudan>. No two names have the same IRI.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from lmpnn_kge.errors import QueryError, short

#: The scheme of all names that are not IRIs themselves.
SCHEME = "kge:"

#: How the name of a blank node begins. SPARQL cannot name a blank node.
BLANK = "_:"

_CHARACTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|[^\W_\x00-\x7f]|%[0-9A-Fa-f]{2})"
_IRI = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*:"
    rf"(?://[A-Za-z0-9\-._~]+(?::\d+)?(?=[/?#]|\Z)|(?!//))"  # a host, or none
    rf"(?:{_CHARACTER}|/)*(?:\?(?:{_CHARACTER}|[/?])*)?(?:\#(?:{_CHARACTER}|[/?])*)?"
)
_RELATIVE = re.compile(r"(?![A-Za-z][A-Za-z0-9+.\-]*:)")

#: What stays as it is in the IRI of a name, besides letters and digits.
_SAFE = "-._~!$&'()*+,;=:@/"


def iri_of(name: str) -> str:
    """The IRI of an entity or a relation, without angle brackets."""
    if is_iri(name):
        return name
    encoded = "".join(
        c if c in _SAFE or c.isalnum() else quote(c, safe="", errors="surrogatepass") for c in name
    )
    # A resolver would remove the segments . and .., and take what follows // for a host.
    segments = [segment.replace(".", "%2E") if segment in (".", "..") else segment
                for segment in encoded.split("/")]  # fmt: skip
    path = "/".join(segments)
    return SCHEME + (f"%2F{path[1:]}" if path.startswith("//") else path)


def name_of(iri: str) -> str:
    """The name that an IRI stands for; a relative IRI is a name with percent-encoding."""
    if not _RELATIVE.match(iri) and not iri.startswith(SCHEME):
        return iri
    try:
        return unquote(iri.removeprefix(SCHEME), errors="strict")
    except UnicodeDecodeError as error:
        raise QueryError(f"<{short(iri)}> is not UTF-8 after percent-decoding") from error


def is_iri(name: str) -> bool:
    """Whether a name is an absolute IRI, which stands for itself."""
    return not name.startswith(SCHEME) and _IRI.fullmatch(name) is not None
