"""Vectors of queries of several patterns, scored together: as each by itself."""

import torch

from lmpnn_kge.methods.vectors import Vectors


def parts():
    """Queries with one, three and two vectors."""
    random = torch.Generator().manual_seed(0)
    shapes = [(1, 2, 4), (3, 3, 4), (2, 1, 4)]
    return [torch.randint(-3, 4, shape, generator=random).float() for shape in shapes]


def test_the_best_vector_of_a_query_counts():
    entities = torch.arange(-10, 10).view(5, 4).float()
    expected = torch.cat([(part @ entities.T).amax(0) for part in parts()])
    vectors = Vectors.of(parts())
    assert len(vectors) == 6
    assert torch.equal(vectors.scores(entities), expected)
    buffer = torch.empty(len(vectors.stacked), 5)
    assert torch.equal(vectors.scores(entities, buffer), expected)


def test_queries_keep_their_vectors_in_another_order():
    entities = torch.arange(-10, 10).view(5, 4).float()
    vectors, order = Vectors.of(parts()), torch.tensor([5, 0, 3, 1, 4, 2])
    assert torch.equal(vectors.ordered(order).scores(entities), vectors.scores(entities)[order])
