"""A memory service on the embedded default, shared by tests that break nothing."""

from collections.abc import Iterator

import pytest

from tests.e2e.memories import User, user_of
from tests.e2e.processes import Program, memory_program


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with memory_program(tmp_path_factory.mktemp("embedded")) as program:
        program.start()
        yield program


@pytest.fixture
def embedded_user(embedded: Program) -> Iterator[User]:
    with user_of(embedded.address) as user:
        yield user
