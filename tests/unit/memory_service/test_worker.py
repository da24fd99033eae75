import asyncio

from memory_service.worker import Worker


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
