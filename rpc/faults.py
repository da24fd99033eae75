"""What of an unforeseen exception may be logged."""

import traceback


def place_of(fault: BaseException) -> dict[str, str]:
    """Say what was raised where, for a log line; not its text, which may quote what a user said."""
    last = traceback.extract_tb(fault.__traceback__)[-1]
    return {"error": type(fault).__name__, "at": f"{last.filename}:{last.lineno}"}
