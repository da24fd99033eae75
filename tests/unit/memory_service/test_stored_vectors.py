"""Embeddings are kept as float16: what that costs, and that ranking cannot see it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_service.adapters.sql.vectors import all_from_bytes, from_bytes, to_bytes


def unit(rows: int, dims: int, seed: int) -> NDArray[np.float32]:
    """Random directions around a common one: cosines of real sentences lie close together."""
    random = np.random.default_rng(seed)
    matrix = random.standard_normal((rows, dims)) + 0.7
    units: NDArray[np.float32] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return units.astype(np.float32)


@pytest.mark.parametrize("dims", [64, 384, 512, 1536, 3072])
def test_the_nearest_rows_stay_the_same_but_for_ties(dims: int) -> None:
    rows = unit(5000, dims, seed=1)
    stored = np.stack([from_bytes(to_bytes(row)) for row in rows])
    for query in unit(20, dims, seed=2):
        exact, kept = rows @ query, stored @ query
        assert np.abs(exact - kept).max() < 3e-4
        nearest = np.argsort(-kept)[:100]
        hundredth = np.sort(exact)[-100]
        assert exact[nearest].min() > hundredth - 3e-4


def test_a_vector_takes_two_bytes_a_dimension_and_keeps_its_length() -> None:
    (row,) = unit(1, 512, seed=3)
    assert len(to_bytes(row)) == 1024
    assert np.linalg.norm(from_bytes(to_bytes(row))) == pytest.approx(1, abs=5e-4)


def test_many_are_read_as_one_by_one() -> None:
    rows = unit(3, 8, seed=4)
    stored = [to_bytes(rows[0]), None, to_bytes(rows[1]), to_bytes(rows[2])]
    vectors = all_from_bytes(stored)
    assert vectors[1] is None
    for read, one in zip(vectors, stored, strict=True):
        assert one is None or np.array_equal(read, from_bytes(one))  # type: ignore[arg-type]
    assert all_from_bytes([]) == []
    assert all_from_bytes([None]) == [None]


def test_vectors_of_different_sizes_are_read_too() -> None:
    long, short = all_from_bytes([to_bytes(unit(1, 8, 5)[0]), to_bytes(unit(1, 4, 6)[0])])
    assert long is not None
    assert short is not None
    assert (long.shape, short.shape) == ((8,), (4,))
