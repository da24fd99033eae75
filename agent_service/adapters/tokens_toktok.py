"""Counts tokens with toktok: byte-identical to OpenAI's tokenizers, offline."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_service.domain.tokens import ByteClassEstimate, TokenCounter

try:
    import toktok
except ImportError:  # pragma: no cover — a platform without its wheel
    toktok = None

_MANY_CHARS = 200_000
"""From here on a pool of threads is faster than the calling one."""
_CHARS_PER_TOKEN = 8
_ENCODINGS = (
    ("gpt-oss", "o200k_harmony"),
    ("gpt-4o", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-5", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5", "cl100k_base"),
)
"""Model names by their beginning, the first that fits."""


@dataclass(frozen=True, slots=True)
class ToktokCounter:
    """Counts as one encoding does; exact says whether the model at hand has that encoding."""

    name: str = "o200k_base"
    exact: bool = True

    def count_many(self, texts: Sequence[str]) -> Sequence[int]:
        """Count in one call, on all cores if it is much; a lone surrogate counts as `?`."""
        threads = 0 if sum(map(len, texts)) > _MANY_CHARS else 1
        counts: list[int]
        try:
            counts = toktok.batch_count(texts, self.name, threads)
        except UnicodeEncodeError:
            counts = toktok.batch_count([_encodable(text) for text in texts], self.name, threads)
        return counts

    def truncate(self, text: str, limit: int) -> str:
        """Give the prefix of at most limit tokens; reads little more of the text than that."""
        if limit <= 0:
            return ""
        chars = _CHARS_PER_TOKEN * limit
        while True:
            part = _encodable(text[:chars])
            prefix, total = toktok.truncate(part, limit, self.name)
            if total > limit or chars >= len(text):
                return text[: len(prefix)]
            chars *= 2


def _encodable(text: str) -> str:
    """Put `?` for each lone surrogate; as long as before."""
    return text.encode(errors="replace").decode()


def default_counter(model: str = "") -> TokenCounter:
    """Give the counter for a model: exact where its encoding is known, else o200k, else estimated.

    Without a model it is o200k_base, exact by definition: nobody counts otherwise.
    """
    if toktok is None:
        return ByteClassEstimate()
    if not model:
        return ToktokCounter()
    bare = model.rsplit("/", 1)[-1].lower()
    for beginning, encoding in _ENCODINGS:
        if bare.startswith(beginning):
            return ToktokCounter(encoding)
    return ToktokCounter(exact=False)
