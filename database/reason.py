"""What an error of a command says in one line."""

from sqlalchemy.exc import DBAPIError


def reason_of(error: Exception) -> str:
    """Give a driver's text instead of SQLAlchemy's, which repeats the statement and its values."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return f"the database does not do it: {error.orig}"
    return str(error) or type(error).__name__
