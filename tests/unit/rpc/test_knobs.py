"""Knobs: shown with their meaning, secrets hidden, mistakes named by variable."""

from pathlib import Path

import pytest
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from rpc.knobs import as_text, problems, shown, unknown_variables, variable


class Knobs(BaseSettings):
    """A few knobs of every kind."""

    model_config = SettingsConfigDict(env_prefix="THING_")

    port: int = Field(default=1, ge=1, description="Where\n   it listens")
    url: SecretStr = Field(default=SecretStr("mysql://me:pass:wo@rd@host/db"), description="Data")
    key: SecretStr = Field(default=SecretStr("sesame"), description="Key")
    empty: SecretStr = Field(default=SecretStr(""), description="Nothing")
    token: str = Field(default="", validation_alias="OTHER_TOKEN", description="Shared")
    folder: Path = Field(default=Path("data"), description="Folder")
    loud: bool = Field(default=False, description="Loud")
    maybe: float | None = Field(default=None, description="Unset")


def test_every_knob_is_shown_by_its_variable_with_its_meaning() -> None:
    knobs = shown(Knobs(port=7))
    assert knobs["THING_PORT"] == {"value": 7, "default": 1, "description": "Where it listens"}
    assert "OTHER_TOKEN" in knobs
    assert "THING_TOKEN" not in knobs


def test_no_secret_is_shown() -> None:
    knobs = shown(Knobs())
    assert knobs["THING_URL"]["value"] == "mysql://me:***@host/db"
    assert knobs["THING_KEY"]["value"] == "***"
    assert knobs["THING_EMPTY"]["value"] == ""


def test_knobs_are_written_as_the_environment_would_say_them() -> None:
    text = as_text(shown(Knobs()))
    assert "# Where it listens\nTHING_PORT=1\n" in text
    assert "THING_LOUD=off\n" in text
    assert "THING_MAYBE=\n" in text
    assert "THING_FOLDER=data\n" in text


def test_on_is_written_for_true() -> None:
    assert "THING_LOUD=on\n" in as_text(shown(Knobs(loud=True)))


def test_variables_that_are_no_knobs_are_named() -> None:
    names = ["THING_PROT", "THING_PORT", "OTHER_TOKEN", "PATH"]
    assert unknown_variables(Knobs, names) == ["THING_PROT"]


def test_a_mistake_names_its_variable() -> None:
    with pytest.raises(ValidationError) as caught:
        Knobs(port=0)
    (line,) = problems(Knobs, caught.value)
    assert line.startswith("THING_PORT: ")


def test_a_variable_is_its_alias_or_prefix_and_name() -> None:
    assert variable(Knobs, "token") == "OTHER_TOKEN"
    assert variable(Knobs(), "port") == "THING_PORT"
