"""Files of triples, cut, spliced and overwritten at random: each is read or refused in one line.

`python -m tests.graph.formats.mutations 10000` tries so many, and prints what took longest.
"""

import gzip
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from lmpnn_kge import KnowledgeGraph, LmpnnError, split_file
from lmpnn_kge.graph.formats import cache

#: Seconds after which a file counts as one that hangs.
LIMIT = 60

ENTITY, RELATION = "http://example.org/é{}".format, "http://example.org/r{}".format

ROWS = [(ENTITY(n % 17), RELATION(n % 3), ENTITY(n * 7 % 13)) for n in range(60)]

TURTLE = (
    "@prefix ex: <http://example.org/> .\n@base <http://example.org/base/> .\n"
    'ex:a ex:r [ ex:s ( ex:b "c"@en <d> ) ] ; ex:label """x\ny""" , 1 , true .\n'
    + "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in ROWS)
)

PIECES = [b'"', b"\0", b"\r", b"\n", b"\t", b",", b"<", b">", b"\xff\xfe", b"\xef\xbb\xbf", b"\\u",
          b"[" * 500, b"{" * 500, b"(" * 500, b"9" * 400, b"-1", b"@prefix", b"PAR1", b"\x1f\x8b",
          b"a" * 200_000, b"\n" * 5000, b"\xe2\x80\xa8", b"1e999", b"null", b"!!python/x",
          b"&a *a"]  # fmt: skip


def seeds(folder: Path) -> dict[str, bytes]:
    """A sound file of every format that can be read here, by name."""
    table = [("head", "relation", "tail"), *ROWS]
    files = {
        "a.tsv": "".join("\t".join(row) + "\n" for row in table).encode(),
        "a.csv": "".join(",".join(f'"{cell}"' for cell in row) + "\r\n" for row in table).encode(),
        "b.csv": "".join(";".join(row) + "\n" for row in table).encode(),
        "a.jsonl": "".join(
            f'{{"head": "{h}", "relation": "{r}", "tail": "{t}", "w": 0.5}}\n' for h, r, t in ROWS
        ).encode(),
    }
    files["a.tsv.gz"] = gzip.compress(files["a.tsv"])
    if find_spec("zstandard"):
        import zstandard

        files["a.csv.zst"] = zstandard.compress(files["a.csv"])
    if find_spec("pandas") and find_spec("pyarrow"):
        import pandas

        pandas.DataFrame(ROWS, columns=table[0]).to_parquet(folder / "a.parquet")
        files["a.parquet"] = (folder / "a.parquet").read_bytes()
    if find_spec("pyoxigraph"):
        import pyoxigraph

        files["a.ttl"] = TURTLE.encode()
        for ending, format in (
            ("nt", "N_TRIPLES"), ("nq", "N_QUADS"), ("trig", "TRIG"), ("rdf", "RDF_XML"),
            ("jsonld", "JSON_LD"),
        ):  # fmt: skip
            quads = pyoxigraph.parse(TURTLE.encode(), pyoxigraph.RdfFormat.TURTLE)
            triples = [pyoxigraph.Triple(q.subject, q.predicate, q.object) for q in quads]
            kind = getattr(pyoxigraph.RdfFormat, format)
            files[f"a.{ending}"] = pyoxigraph.serialize(triples, format=kind)
    return files


def mutate(content: bytes, others: list[bytes], drawn: random.Random) -> bytes:
    """Something that was a file once."""
    result = bytearray(content)
    for _ in range(drawn.choice([1, 1, 1, 2, 5])):
        at = drawn.randrange(len(result) + 1)
        match drawn.randrange(6):
            case 0:
                del result[at:]
            case 1:
                other = drawn.choice(others)
                result[at:] = other[drawn.randrange(len(other)) :]
            case 2:
                result[at : at + drawn.randrange(20)] = drawn.randbytes(drawn.randrange(20))
            case 3:
                result[at:at] = drawn.choice(PIECES)
            case 4:
                del result[at : at + drawn.randrange(1, 200)]
            case 5 if result:
                result[at % len(result)] ^= 1 << drawn.randrange(8)
    return bytes(result)


class Hanging(Exception):
    """A file that takes too long."""


def _stop(*_):
    raise Hanging


def attempt(file: Path, out: Path, drawn: random.Random) -> str:
    """Read a file in one of the ways a user can; anything but an LmpnnError is a bug."""
    skip = drawn.choice([0, 0, 3])
    options = {"skip_bad": skip} if drawn.random() < 0.7 else {"header": True, "columns": "1,2,3"}
    try:
        if drawn.random() < 0.5:
            split_file(file, out, **options)
        else:
            KnowledgeGraph.open(file, **options).answer('"x"(?, ?x)')
    except LmpnnError as error:
        return "several lines" if "\n" in str(error) else type(error).__name__
    return "read"


def attempt_folder(folder: Path) -> str:
    try:
        graph = KnowledgeGraph.open(folder)
        for split in ("train", "valid", "test"):
            graph.triples(split)
    except LmpnnError:
        return "folder refused"
    return "folder read"


def run(count: int, seed: int = 0, limit: int = 0) -> Counter[str]:
    """Try so many files; raises what a bug raises, and Hanging after a limit in seconds, if any."""
    drawn = random.Random(seed)
    outcomes: Counter[str] = Counter()
    slowest = 0.0, ""
    if limit:
        signal.signal(signal.SIGALRM, _stop)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        files = seeds(home)
        split_file([_written(home / "sound.tsv", files["a.tsv"])], home / "sound")
        worth, cache.WORTH = cache.WORTH, 1
        KnowledgeGraph.open(home / "sound")  # makes its cache
        try:
            for number in range(count):
                signal.alarm(limit)
                started = time.monotonic()
                if drawn.random() < 0.25:
                    folder = home / "folder"
                    shutil.copytree(home / "sound", folder)
                    target = drawn.choice(sorted(folder.iterdir()))
                    target.write_bytes(mutate(target.read_bytes(), [*files.values()], drawn))
                    name = f"{number}: {target.name}"
                    outcomes[attempt_folder(folder)] += 1
                    shutil.rmtree(folder)
                else:
                    name = drawn.choice(sorted(files))
                    content = mutate(files[name], [*files.values()], drawn)
                    file = _written(home / name, content)
                    outcomes[attempt(file, home / "out", drawn)] += 1
                    shutil.rmtree(home / "out", ignore_errors=True)
                slowest = max(slowest, (time.monotonic() - started, name))
        except BaseException:
            print(f"failed at file {number} of seed {seed}", file=sys.stderr)
            raise
        finally:
            signal.alarm(0)
            cache.WORTH = worth
    outcomes["slowest, in ms"] = int(1000 * slowest[0])
    outcomes["most memory, in MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
    return outcomes


def _written(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


if __name__ == "__main__":
    for outcome, number in sorted(run(int(sys.argv[1]), int([*sys.argv, 0][2]), LIMIT).items()):
        print(f"{number:>8}  {outcome}")
