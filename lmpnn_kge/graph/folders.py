"""The folder of a graph, in whichever layout, with labels from a file of their own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lmpnn_kge.graph.formats import betae, cache, libkge, named
from lmpnn_kge.graph.formats.content import Content
from lmpnn_kge.graph.formats.labels import labels_in


def read_folder(folder: Path) -> Content:
    """Read a folder in LibKGE's layout, in BetaE's or of named triples, or from its cache."""
    return cache.cached(folder, read_texts)


def read_texts(folder: Path) -> Content:
    """Read the files of a folder, whatever a cache may say."""
    layout = next((f for f in (libkge, betae) if f.recognises(folder)), named)
    content = layout.read(folder)
    labelled = labels_in(folder)
    if labelled is None:
        return content
    return dataclasses.replace(content, vocabulary=labelled.of(content.vocabulary))
