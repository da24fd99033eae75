"""Threads for waiting: bounded, and left usable by callers that give up."""

import asyncio
import contextvars
import threading

import pytest

from database.pool import ThreadPool


async def test_the_loop_goes_on_while_a_call_waits() -> None:
    pool, release = ThreadPool("t", 1), threading.Event()
    waiting = asyncio.create_task(pool.run(release.wait))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    release.set()
    assert await waiting is True
    pool.close()


async def test_no_more_calls_run_at_a_time_than_there_are_threads() -> None:
    pool, lock, running, most = ThreadPool("t", 3), threading.Lock(), [0], [0]

    def call() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.01)
        with lock:
            running[0] -= 1

    await asyncio.gather(*(pool.run(call) for _ in range(12)))
    assert most[0] <= 3
    pool.close()


async def test_errors_reach_the_caller() -> None:
    pool = ThreadPool("t", 1)
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 // 0)
    assert await pool.run(lambda: 1) == 1
    pool.close()


async def test_callers_that_give_up_leave_the_pool_usable() -> None:
    pool, release, ran = ThreadPool("t", 1), threading.Event(), []
    running = asyncio.create_task(pool.run(release.wait))
    queued = asyncio.create_task(pool.run(lambda: ran.append(1)))
    await asyncio.sleep(0.01)
    running.cancel()
    queued.cancel()
    await asyncio.gather(running, queued, return_exceptions=True)
    release.set()
    assert await pool.run(lambda: "next") == "next"
    assert ran == [], "a call given up while queued never runs"
    pool.close()


async def test_calls_know_the_context_of_their_caller() -> None:
    pool = ThreadPool("t", 1)
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    name.set("ann")
    assert await pool.run(name.get) == "ann"
    pool.close()


async def test_a_closed_pool_takes_no_calls() -> None:
    pool = ThreadPool("t", 1)
    pool.close()
    with pytest.raises(RuntimeError):
        await pool.run(lambda: 1)
