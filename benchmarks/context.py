"""How long it takes to assemble a prompt, and how far counters are off.

python -m benchmarks.context [--rounds N] [--json]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent_service.adapters.tokens_toktok import default_counter
from agent_service.domain.assemble import assemble
from agent_service.domain.chat_context import chat_components
from agent_service.domain.components import Budget, Component, Truncate
from agent_service.domain.model import MemoryType, Message, RecalledMemory, Role
from agent_service.domain.render import RenderMode, render_memory
from agent_service.domain.tokens import ByteClassEstimate, TokenCounter

ENGLISH = "The meeting moved to Thursday, so please tell everyone who was invited. "
CHINESE = "用户偏好：所有回答必须使用中文，并且保持简洁。"
MANY_LIMIT_MS = 150.0
BIG_LIMIT_MS = 100.0


class Took(NamedTuple):
    """Milliseconds of a case: on the clock and of the processor, medians, and what is allowed."""

    wall: float
    cpu: float
    limit: float | None


def took(work: Callable[[], object], rounds: int, limit: float | None = None) -> Took:
    """Time work, after one round that nobody counts."""
    work()
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return Took(statistics.median(walls), statistics.median(cpus), limit)


def many(count: int) -> list[Component]:
    """Give components of about 30 tokens each."""
    return [
        Component(
            id=f"part-{index}",
            title=f"part {index}",
            text=f"{ENGLISH}{index} {CHINESE}",
            priority=index % 100,
            truncate=Truncate.HEAD,
        )
        for index in range(count)
    ]


def big(how: Truncate, text: str) -> list[Component]:
    """Give one component of a megabyte that must be cut."""
    return [Component(id="big", text=text * (1_000_000 // len(text.encode())), truncate=how)]


def chat() -> list[Component]:
    """Give a chat turn: instructions, 18 memories, 40 messages."""
    types = (MemoryType.CONSTRAINT, MemoryType.PREFERENCE, MemoryType.FACT)
    memories = [
        RecalledMemory(
            memory_id=str(index),
            memory_type=types[index % 3],
            title="",
            content=f"{CHINESE}{index}",
        )
        for index in range(18)
    ]
    history = [
        Message(Role.USER if index % 2 == 0 else Role.ASSISTANT, ENGLISH * 10)
        for index in range(40)
    ]
    memory = render_memory(memories, mode=RenderMode.TYPED_V2, locale="zh", message="")
    return chat_components(
        instructions=ENGLISH * 20, memory=memory, history=history, user_text=CHINESE
    )


def timings(counter: TokenCounter, rounds: int) -> dict[str, Took]:
    """Time each case; the first says how fast this machine runs Python at all."""

    def run(parts: Sequence[Component], window: int, limit: float | None = None) -> Took:
        budget = Budget(window=window)
        return took(lambda: assemble(parts, budget, counter), rounds, limit)

    parts = many(10_000)
    cases = {
        "for comparison: sum(range(1_000_000))": took(lambda: sum(range(1_000_000)), rounds),
        "10,000 components": run(parts, 1_000_000, MANY_LIMIT_MS),
        "10,000 components, half of them dropped": run(parts, 200_000, MANY_LIMIT_MS),
        "a chat turn, all of it fits": run(chat(), 32_768),
        "a chat turn, history cut": run(chat(), 4_096),
    }
    for how in (Truncate.HEAD, Truncate.TAIL, Truncate.MIDDLE):
        for language, text in (("English", ENGLISH), ("Chinese", CHINESE)):
            name = f"1 MB of {language}, cut to 32k, {how} kept"
            cases[name] = run(big(how, text), 32_768, BIG_LIMIT_MS)
    return cases


def errors() -> dict[str, dict[str, float]]:
    """Give what estimates say of a text, as shares of what o200k counts."""
    exact = default_counter()
    estimate = ByteClassEstimate()
    texts = {"English": ENGLISH * 50, "Chinese": CHINESE * 50, "both": (ENGLISH + CHINESE) * 50}
    return {
        name: {
            "len // 4": len(text) // 4 / exact.count_many([text])[0],
            estimate.name: estimate.count_many([text])[0] / exact.count_many([text])[0],
        }
        for name, text in texts.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.context", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="times that each case is run")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    counter = default_counter()
    cases = timings(counter, options.rounds)
    shares = errors()
    if options.json:
        figures = {
            "counter": counter.name,
            "milliseconds": {name: case._asdict() for name, case in cases.items()},
            "estimate_over_exact": shares,
        }
        print(json.dumps(figures, ensure_ascii=False, indent=2))
        return
    print("    wall      cpu  ms")
    for name, case in cases.items():
        limit = f" (limit {case.limit:.0f})" if case.limit else ""
        print(f"{case.wall:8.2f} {case.cpu:8.2f}  {name}{limit}")
    for name, by_counter in shares.items():
        said = ", ".join(f"{who} {share:.2f}" for who, share in by_counter.items())
        print(f"tokens of {name}, 1 is what o200k counts: {said}")


if __name__ == "__main__":
    main()
