"""Names that contain what is typed, as a slow search finds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.serve.name_index import NameIndex

names = st.text(alphabet="ab _Ü\n.", max_size=5)


def slow(ids, labels, part):
    found = {}
    for row, id_ in enumerate(ids):
        for name in (id_, labels[row]):
            folded = name.casefold().replace("\n", " ") if name is not None else ""
            for place in range(len(folded) - len(part) + 1):
                if name is not None and folded.startswith(part, place):
                    before = folded[place - 1]
                    quality = 0 if place == 0 else 2 if before.isalnum() else 1
                    found[row] = min(quality, found.get(row, 3))
    return found


@given(st.lists(st.tuples(names, st.none() | names), max_size=6), names.filter(bool))
def test_names_are_found_by_any_part_of_them(pairs, part):
    ids, labels = [id_ for id_, _ in pairs], [label for _, label in pairs]
    rows, quality = NameIndex.of(ids, labels).find(part)
    expected = slow(ids, labels, part.casefold().replace("\n", " "))
    assert dict(zip(rows.tolist(), quality.tolist(), strict=True)) == expected
    assert np.all(np.diff(rows) > 0)
