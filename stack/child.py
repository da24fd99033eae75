"""Becomes one of our programs, which the system ends when the stack that started it is gone.

Run as `python child.py <pid of the stack> <what python is given>`. Not done in a fork of the stack
itself: gRPC hooks into forks.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""See prctl(2). Only Linux has it: elsewhere programs outlive a stack that is killed with -9."""


def main() -> None:
    """Ask for a SIGTERM at the stack's end, whatever ends it, and go on as the program."""
    stack, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(stack):  # it ended before we asked
            sys.exit(1)
    os.execv(sys.executable, [sys.executable, *command])  # noqa: S606 — no shell, our own modules


if __name__ == "__main__":
    main()
