"""Why the stack did not come up, or did not stay."""


class StartFailed(Exception):
    """A program did not come up; the text is one line that says which, why, and what to do."""


class Stopped(Exception):
    """The user asked to stop while a program was starting."""
