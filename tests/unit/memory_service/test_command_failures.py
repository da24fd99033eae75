"""How commands end that the domain refuses."""

import argparse

import pytest

from memory_service import commands
from memory_service.domain.errors import (
    DomainError,
    EmbedderUnavailable,
    IndexUnavailable,
    InvalidField,
    InvalidRequest,
)
from memory_service.settings import Settings

TELLING: dict[type[DomainError], DomainError] = {
    IndexUnavailable: IndexUnavailable("timeout"),
    EmbedderUnavailable: EmbedderUnavailable("timeout"),
    InvalidField: InvalidField("memory.title", "at most 256 bytes"),
    InvalidRequest: InvalidRequest([InvalidField("user_id", "is required")]),
}
ERRORS = [TELLING.get(kind) or kind() for kind in DomainError.__subclasses__()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_each_refusal_of_the_domain_is_one_line_that_says_why(
    error: DomainError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_settings: Settings, _options: argparse.Namespace) -> int:
        raise error

    monkeypatch.setitem(commands._COMMANDS, "import", refused)
    code = commands.run(argparse.Namespace(command="import"), Settings())
    assert code == (2 if isinstance(error, InvalidRequest) else 1)
    (said,) = capsys.readouterr().err.splitlines()
    assert len(said) > len("memory-service: ")
    assert type(error).__name__ not in said
