"""Answer text that arrives in any pieces: whole characters, and thoughts told from words."""

import codecs

_OPEN, _CLOSE = "<think>", "</think>"


class WholeCharacters:
    """Text whose characters may be cut into two surrogates, as JSON escapes allow."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")(errors="replace")

    def feed(self, text: str, *, final: bool = False) -> str:
        """Give whole characters; half of one waits for the other, a lone one becomes U+FFFD."""
        encoded = text.replace("\0", "").encode("utf-16-le", "surrogatepass")
        return self._decoder.decode(encoded, final)


class ThinkTags:
    """An answer that may begin with `<think>…</think>`, as models write it without a parser."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False
        """Nothing but words can come."""

    def feed(self, text: str) -> tuple[str, int]:
        """Give the words of the answer, and how many characters of thoughts there were."""
        if self._over:
            return text, 0
        self._held += text
        if not self._inside:
            begin = self._held.lstrip()
            if not begin.startswith(_OPEN):
                return ("", 0) if _OPEN.startswith(begin) else (self.end(), 0)
            self._inside = True
            self._held = begin.removeprefix(_OPEN)
        return self._after_thoughts()

    def end(self) -> str:
        """Give the words that were held back; thoughts that never end are none."""
        words = "" if self._inside else self._held
        self._held, self._over = "", True
        return words

    def _after_thoughts(self) -> tuple[str, int]:
        thoughts, closed, words = self._held.partition(_CLOSE)
        if not closed:  # an end of it may be the beginning of the closing tag
            kept = min(len(thoughts), len(_CLOSE) - 1)
            self._held = thoughts[len(thoughts) - kept :]
            return "", len(thoughts) - kept
        self._held = _CLOSE + words.lstrip()  # blanks between the tag and the first word go
        if not words.strip():
            return "", len(thoughts)
        self._over = True
        return words.lstrip(), len(thoughts)
