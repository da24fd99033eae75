"""Why an embedded Milvus does not open: one line each, for who starts the service."""


class IndexBusy(Exception):
    """Another process holds the milvus-lite folder; the text is one line to show."""


class IndexBroken(Exception):
    """The milvus-lite folder cannot be read; the text is one line that says what to do."""
