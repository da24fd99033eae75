"""examples/what_happened.py, as people run it."""

import asyncio
import runpy
from pathlib import Path
from typing import Any

import pytest

from memory_service.v1 import memory_pb2 as pb
from tests.integration.memory_service.conftest import MemoryServer

EXAMPLE = Path(__file__).parents[3] / "examples" / "what_happened.py"


async def run(server: MemoryServer, *arguments: str) -> int:
    main: Any = runpy.run_path(str(EXAMPLE))["main"]
    code: int = await asyncio.to_thread(main, [*arguments, "--memory", server.address])
    return code


async def test_it_tells_what_replaced_what_and_brings_a_version_back(
    memory_server_on_sqlite: MemoryServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server = memory_server_on_sqlite
    for version, title in ((1, "Tea"), (2, "Milk")):
        gone = pb.Memory(
            memory_id="m1",
            memory_type=pb.MEMORY_TYPE_FACT,
            title=title,
            content="Likes tea.",
            status=pb.MEMORY_STATUS_SUPERSEDED if version == 2 else pb.MEMORY_STATUS_ACTIVE,
            superseded_by="m2" if version == 2 else "",
        )
        gone.update_time.FromSeconds(1_700_000_000 + version)
        message = pb.ImportMemoriesRequest(user_id="ann", request_id=f"i{version}", memory=gone)
        await server.stub.ImportMemories(iter([message]))
    assert await run(server, "ann") == 0
    told = capsys.readouterr().out
    assert "m1 v2  SUPERSEDE by the user" in told
    assert "    replaced by m2" in told
    assert await run(server, "ann", "--revert", "m1", "1") == 0
    assert "m1 v3  RESTORE by the user" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "code"), [("two", 2), ("0", 2), ("9" * 20, 2), ("²", 2), ("7", 1)]
)
async def test_what_cannot_be_is_one_line(
    memory_server_on_sqlite: MemoryServer,
    capsys: pytest.CaptureFixture[str],
    version: str,
    code: int,
) -> None:
    assert await run(memory_server_on_sqlite, "ann", "--revert", "m1", version) == code
    said = capsys.readouterr()
    assert "because" not in said.out
    # The server of this process may log beside it.
    assert len([line for line in said.err.splitlines() if line.startswith("what_happened: ")]) == 1
