"""What a command says, a line at a time, and the exit codes that it ends with."""

import sys

DONE, FAILED = 0, 1


def tell(line: str) -> None:
    """Print a result at once, also where stdout is a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def complain(program: str, text: str) -> None:
    """Print what went wrong as one line on stderr, whatever the text is."""
    sys.stderr.write(f"{program}: {' '.join(text.split())}\n")
