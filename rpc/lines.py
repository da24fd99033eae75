"""What a command says, a line at a time, and the exit codes that it ends with."""

import sys

DONE, FAILED = 0, 1
INTERRUPTED = 130
"""What a shell says of a program that Ctrl-C ended."""


def tell(line: str) -> None:
    """Print a result at once, also where stdout is a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def interrupted(program: str) -> int:
    """Say that Ctrl-C ended a command, and give its exit code."""
    complain(program, "interrupted")
    return INTERRUPTED


def complain(program: str, text: str) -> None:
    """Print what went wrong as one line on stderr, whatever the text is."""
    sys.stderr.write(f"{program}: {' '.join(text.split())}\n")
