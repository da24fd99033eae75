"""How a process reads and shows its settings: every knob by its variable, secrets hidden."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, SecretStr, ValidationError
from pydantic_settings import BaseSettings

from rpc.lines import complain

DATABASES = frozenset({"sqlite", "mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql"})


def _http_url(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        message = "must begin with http:// or https://"
        raise ValueError(message)
    return value


def _database_url(value: SecretStr) -> SecretStr:
    kind, there, _ = value.get_secret_value().partition("://")
    if value.get_secret_value() and not (there and kind in DATABASES):
        message = (
            "must be a URL of SQLite, MySQL or MariaDB, such as mysql+pymysql://user@host/name"
        )
        raise ValueError(message)
    return value


HttpUrl = Annotated[str, AfterValidator(_http_url)]
"""An address of a web server; empty: none."""
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
"""A SQLAlchemy URL of a database that `database` knows; empty: none."""

BAD_SETTINGS = 2
"""Exit code: the command line or a setting is not acceptable."""

S = TypeVar("S", bound=BaseSettings)


def read(kind: type[S], service: str) -> S | None:
    """Read the settings of a service from the environment.

    None if a variable is not acceptable: each such one is a line on stderr. One that looks like a
    knob and is none is a warning.
    """
    try:
        settings = kind()
    except ValidationError as error:
        for line in problems(kind, error):
            complain(service, line)
        return None
    for name in unknown_variables(kind, os.environ):
        complain(service, f"warning: {name} is no setting")
    return settings


def show(settings: BaseSettings, *, as_json: bool) -> None:
    """Print all knobs as they are in force, as variables with comments or as JSON."""
    knobs = shown(settings)
    sys.stdout.write(json.dumps(knobs, indent=2) + "\n" if as_json else as_text(knobs))


def count(text: str) -> int:
    """Read a number of processes from a command line."""
    number = int(text)
    if number < 1:
        message = "at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def shown(settings: BaseSettings) -> dict[str, dict[str, Any]]:
    """Give each knob's value, default and description by variable, secrets hidden."""
    return {
        variable(settings, name): {
            "value": _shown(getattr(settings, name)),
            "default": _shown(field.default),
            "description": " ".join((field.description or "").split()),
        }
        for name, field in type(settings).model_fields.items()
    }


def variable(settings: BaseSettings | type[BaseSettings], name: str) -> str:
    """Give the environment variable of a field: its alias, else prefix and name in capitals."""
    kind = settings if isinstance(settings, type) else type(settings)
    alias = kind.model_fields[name].validation_alias if name in kind.model_fields else None
    return str(alias) if alias else f"{kind.model_config['env_prefix']}{name.upper()}"


def unknown_variables(kind: type[BaseSettings], names: Iterable[str]) -> list[str]:
    """Give variables that look like knobs of these settings and are none: mostly typing errors."""
    prefix = kind.model_config["env_prefix"]
    known = {variable(kind, name) for name in kind.model_fields}
    return sorted(name for name in names if name.startswith(prefix) and name not in known)


def problems(kind: type[BaseSettings], error: ValidationError) -> list[str]:
    """Give one line for each variable that is not acceptable."""
    lines = []
    for problem in error.errors():
        place = [str(part) for part in problem["loc"]]
        name = place[0] if place else ""
        known = name in kind.model_fields
        label = variable(kind, name) if known else name or "settings"
        lines.append(f"{label}: {problem['msg']}")
    return lines


def as_text(knobs: dict[str, dict[str, Any]]) -> str:
    """Write knobs as a file of variables with a comment above each."""
    return "\n".join(
        f"# {knob['description']}\n{name}={_plain(knob['value'])}\n" for name, knob in knobs.items()
    )


def _plain(value: object) -> str:
    """Give a value as the environment would say it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


def _shown(value: object) -> object:
    if isinstance(value, SecretStr):
        return _without_password(value.get_secret_value())
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value) if isinstance(value, Path) else value


def _without_password(secret: str) -> str:
    """Give a URL without its password, stars for any other secret."""
    if "://" not in secret:
        return "***" if secret else ""
    return re.sub(r"(?<=://)([^:/?#]*):.*@", r"\1:***@", secret)
