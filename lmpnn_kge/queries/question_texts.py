"""Many queries as text, without a formula for each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.formula import Constant
from lmpnn_kge.query.patterns import Pattern

Names = npt.NDArray[np.object_]


def question_texts(names: Vocabulary, queries: Queries) -> Names:
    """Every query as a formula over names, [n]: the text of `QueryStore.question`.

    Queries with the same relations inverted differ in names only, so they share a template.
    """
    inverse, relations = np.divmod(queries.relations, names.num_relations)  # [n, r]
    columns = np.hstack([
        _printed(names.entity_ids, queries.constants),
        _printed(names.relation_ids, relations),
    ])  # fmt: skip
    texts = np.empty(len(queries), object)
    shapes, shape_of = np.unique(inverse, axis=0, return_inverse=True)
    for number, shape in enumerate(shapes):
        rows = np.flatnonzero(shape_of.reshape(-1) == number)
        template, places = _template(queries.pattern, shape.tolist())
        texts[rows] = [template % tuple(row) for row in columns[rows][:, places].tolist()]
    return texts


def _printed(ids: Sequence[str], rows: npt.NDArray[np.int32]) -> Names:
    """Names as formulas have them, each made once."""
    used, where = np.unique(rows, return_inverse=True)
    printed = np.array([str(Constant(ids[row])) for row in used], object)
    return printed[where.reshape(rows.shape)] if len(used) else np.empty(rows.shape, object)


def _template(pattern: Pattern, inverse: Sequence[int]) -> tuple[str, list[int]]:
    """The text of a pattern with %s for every name, and which name: constants, then relations."""
    constants = [f"0{place}" for place in range(len(pattern.constants))]
    relations = [
        (f"0{len(constants) + place}", bool(is_inverse)) for place, is_inverse in enumerate(inverse)
    ]
    text = str(pattern.fill(constants, relations))  # no variable begins with a digit
    return re.sub(r"\b0\d+", "%s", text), [int(place) for place in re.findall(r"\b0\d+", text)]
