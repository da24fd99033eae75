"""Server-sent events, as model servers write them."""

import codecs
import re
from collections.abc import Iterator

DONE = "[DONE]"
_LINE_END = re.compile(r"\r\n|\n|\r(?=.)", re.DOTALL)
"""A CR at the end waits for its LF. No other character ends a line, U+2028 neither."""


class EventData:
    """The data of each event, from bytes that may be cut anywhere.

    Lenient where servers are sloppy: no space after the colon, no blank line between events, none
    at the end. What is not UTF-8 becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._rest = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[str]:
        """Take more bytes and give the data that is complete now."""
        self._rest += self._decoder.decode(piece)
        *lines, self._rest = _LINE_END.split(self._rest)
        return [data for line in lines for data in self._take(line)]

    def end(self) -> list[str]:
        """Give what stands after the last line end."""
        lines = [(self._rest + self._decoder.decode(b"", final=True)).rstrip("\r"), ""]
        return [data for line in lines for data in self._take(line)]

    def _take(self, line: str) -> Iterator[str]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        begins = name == "data" and value.startswith(("{", DONE))
        if self._data and (not line or begins):
            yield "\n".join(self._data)
            self._data.clear()
        if name == "data":
            self._data.append(value)
