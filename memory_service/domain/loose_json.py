"""JSON as language models write it: fenced, amid prose, after thoughts, cut off in the middle."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from memory_service.domain.errors import ModelUnreadable
from memory_service.domain.text import without_nul

LONGEST = 64 * 1024
"""Characters of an answer that are read; what is beyond counts as cut off."""
DEEPEST = 32
"""Lists and objects inside each other; what nests deeper is broken."""

_MARK = re.compile(r"[\[{]|<(/?)(think|thinking|thought|reasoning)>", re.IGNORECASE)
"""What matters outside of values: where one may begin, and where thoughts begin or end."""
_THOUGHTS_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<sign>[\[\]{},:])
      | "(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"
      | (?P<number>-?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?)(?![\w.])
      | (?P<word>true|false|null|NaN|-?Infinity|True|False|None)(?!\w)
    )""",
    re.VERBOSE | re.DOTALL,
)
_OPENING, _CLOSING = frozenset("[{"), frozenset("]}")
_BLANK = re.compile(r"\s*+")
_WORDS = {"true": True, "True": True, "false": False, "False": False}
"""All other words are null, NaN and Infinity too: they say nothing."""
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A list or an object that was found; not whole: what had ended before it broke off."""

    value: list[Any] | dict[str, Any]
    whole: bool


def read_json(text: str, keys: Collection[str]) -> Reading:
    """Find the object with one of keys in a model's answer, or else a list.

    A whole object goes before a broken one, an object before a list, a later one before an earlier
    one. Fences and prose around are passed over, thoughts (`<think>`) too, also where their
    beginning is missing. Inside strings nothing is a fence, a thought or a bracket. Of a broken
    value everything is kept that had ended; in a list an unfinished item goes as a whole.

    Strings are clean: surrogates are joined, lone ones are U+FFFD, NUL is dropped; an escape that
    JSON does not know stays as it is written. NaN and Infinity are None, of equal keys the last
    holds, a trailing comma is none. In time linear in the text. Raises ModelUnreadable.
    """
    best: tuple[tuple[bool, bool], Reading] | None = None
    cut = len(text) > LONGEST
    text, place = text[:LONGEST], 0
    while mark := _MARK.search(text, place):
        place = mark.end()
        if mark[1]:  # thoughts that began before the text did
            best = None
        elif mark[2]:
            end = _THOUGHTS_END.search(text, place)
            place = end.end() if end else len(text)
        else:
            reading, place = _value_at(text, mark.start())
            is_object = isinstance(reading.value, dict)
            rank = (is_object, reading.whole)
            wanted = any(key in reading.value for key in keys) if is_object else _says(reading)
            if wanted and (best is None or rank >= best[0]):
                best = rank, reading
    if best is None:
        message = "the model's answer holds no JSON of the form asked for"
        raise ModelUnreadable(message)
    return Reading(value=best[1].value, whole=best[1].whole and not cut)


def _says(reading: Reading) -> bool:
    """Tell whether a list says something: it has items, or it is whole and says that none are."""
    return bool(reading.value) or reading.whole


class _Open:
    """A list or an object that has not ended, and what must come next in it."""

    __slots__ = ("key", "value", "wants")

    def __init__(self, bracket: str) -> None:
        self.value: list[Any] | dict[str, Any] = [] if bracket == "[" else {}
        self.key = ""
        self.wants: Literal["item", "key", "colon", "comma"] = "item" if bracket == "[" else "key"

    def put(self, value: Any) -> None:
        """Take an item, or the value of the last key."""
        if isinstance(self.value, list):
            self.value.append(value)
        else:
            self.value[self.key] = value
        self.wants = "comma"

    def take(self, token: re.Match[str]) -> bool:
        """Take a comma, a colon, a key or a scalar; tell whether it may stand here."""
        if self.wants == "item" and not token["sign"]:
            self.put(_scalar(token))
        elif self.wants == "key" and token["text"] is not None:
            self.key, self.wants = _text(token["text"]), "colon"
        elif self.wants == "colon" and token["sign"] == ":":
            self.wants = "item"
        elif self.wants == "comma" and token["sign"] == ",":
            self.wants = "item" if isinstance(self.value, list) else "key"
        else:
            return False
        return True

    def closes(self, sign: str) -> bool:
        """Tell whether this bracket ends it, after an item or a comma."""
        if isinstance(self.value, list):
            return sign == "]" and self.wants in {"item", "comma"}
        return sign == "}" and self.wants in {"key", "comma"}

    def drop_half_text(self) -> None:
        """Drop a text that more words follow: it held a quote that was not escaped."""
        if self.wants != "comma":
            return
        if isinstance(self.value, dict):
            if isinstance(self.value[self.key], str):
                del self.value[self.key]
        elif isinstance(self.value[-1], str):
            self.value.pop()


def _value_at(text: str, start: int) -> tuple[Reading, int]:
    """Read the list or object that begins at start; give it and where to read on, beyond start."""
    stack = [_Open(text[start])]
    place = start + 1
    while token := _TOKEN.match(text, place):
        sign, top = token["sign"], stack[-1]
        if sign in _OPENING and top.wants == "item" and len(stack) < DEEPEST:
            stack.append(_Open(sign))
        elif sign in _CLOSING and top.closes(sign):
            stack.pop()
            if not stack:
                return Reading(value=top.value, whole=True), token.end()
            stack[-1].put(top.value)
        elif not top.take(token):
            break
        place = token.end()
    return _broken(text, stack, place)


def _broken(text: str, stack: list[_Open], place: int) -> tuple[Reading, int]:
    """Give what had ended. A string without an end reaches to the end of the text."""
    place = _BLANK.match(text, place).end()  # type: ignore[union-attr] # it always matches
    if place < len(text) and text[place] not in _CLOSING:
        stack[-1].drop_half_text()
        if text[place] == '"' and not _TOKEN.match(text, place):
            place = len(text)
    while len(stack) > 1:
        unfinished = stack.pop().value
        if isinstance(stack[-1].value, dict):
            stack[-1].put(unfinished)
    return Reading(value=stack[0].value, whole=False), place


def _scalar(token: re.Match[str]) -> Any:
    if token["text"] is not None:
        return _text(token["text"])
    if (digits := token["number"]) is None:
        return _WORDS.get(token["word"])
    if digits.removeprefix("-").isdigit():
        return int(digits)
    number = float(digits)
    return number if isfinite(number) else None


def _text(raw: str) -> str:
    """Give the characters of a string as it stands between its quotes."""
    plain = _ESCAPE.sub(_unescaped, raw) if "\\" in raw else raw
    pairs = plain.encode("utf-16-le", "surrogatepass")
    return without_nul(pairs.decode("utf-16-le", "replace"))


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, escape[0])
