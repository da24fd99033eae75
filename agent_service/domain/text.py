"""What text may be stored and sent."""

import re

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Take NUL out and put U+FFFD for each lone surrogate; all else stays as it is.

    Neither goes through protobuf and SQL whole, and a model may write both as JSON escapes.
    """
    return _LONE_SURROGATE.sub("\ufffd", text.replace("\0", ""))
