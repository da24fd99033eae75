import asyncio

from prometheus_client import REGISTRY

from memory_service.worker import Worker, show_drift


async def test_a_loop_that_fails_or_ends_is_started_again_and_the_others_go_on() -> None:
    runs: list[str] = []
    enough = asyncio.Event()

    async def fails() -> None:
        runs.append("fails")
        message = "broken"
        raise ValueError(message)

    async def ends() -> None:
        runs.append("ends")
        if runs.count("ends") > 1 and runs.count("fails") > 1:
            enough.set()

    async def lasts() -> None:
        runs.append("lasts")
        await asyncio.Event().wait()

    worker = Worker({"fails": fails, "ends": ends, "lasts": lasts}, pause=0.001, longest=0.002)
    async with worker.running():
        await enough.wait()
    seen = len(runs)
    await asyncio.sleep(0.01)
    assert len(runs) == seen
    assert runs.count("lasts") == 1


async def test_the_pause_is_short_again_after_a_long_run() -> None:
    runs = 0
    enough = asyncio.Event()

    async def works_a_while() -> None:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.002)
        if runs == 3:
            enough.set()

    async with Worker({"loop": works_a_while}, pause=0.001, longest=0.001).running():
        await enough.wait()
    assert runs >= 3


def test_the_drift_that_was_found_last_is_a_metric() -> None:
    for missing, orphaned in ((3, 2), (0, 0)):
        show_drift({"users": 9, "missing": missing, "orphaned": orphaned})
        for kind, found in (("missing", missing), ("orphaned", orphaned)):
            assert REGISTRY.get_sample_value("memory_index_drift", {"kind": kind}) == found
