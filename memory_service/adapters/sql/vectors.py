"""How embeddings are kept: little-endian float16, one after the other.

Half the bytes of float32 on the disk and on the way, and nothing is lost that ranking could see:
see tests/unit/memory_service/test_stored_vectors.py, where the 100 nearest of 5,000 rows stay the
same but for pairs whose cosines differ by less than 0.0003.
"""

import numpy as np

from memory_service.ports import Vector

_STORED = np.dtype("<f2")


def to_bytes(vector: Vector) -> bytes:
    """Write a unit vector."""
    return vector.astype(_STORED).tobytes()


def from_bytes(stored: bytes) -> Vector:
    """Read it; its length is 1 to within 0.0005."""
    return np.frombuffer(stored, dtype=_STORED).astype(np.float32)


def all_from_bytes(stored: list[bytes | None]) -> list[Vector | None]:
    """Read many at once: one conversion where all have one size, as those of one model do."""
    present = [one for one in stored if one is not None]
    if len({len(one) for one in present}) > 1:
        return [None if one is None else from_bytes(one) for one in stored]
    matrix = iter(from_bytes(b"".join(present)).reshape(len(present), -1) if present else ())
    return [None if one is None else next(matrix) for one in stored]
