"""RECALL 1.2 to 1.4 once more, slowly and word by word, to compare the working set with."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log

import numpy as np

from memory_service.domain.centre import Vector
from memory_service.domain.model import Memory, Role
from memory_service.domain.turns import asks, is_named, speaker_of
from memory_service.domain.words import tokens
from memory_service.domain.working_set import Change


def plain_recipe(
    rows: Sequence[Change], text: str, query: Vector | None, allowed: set[str]
) -> Mapping[str, float]:
    """Score the allowed rows but the assistant's; statistics are over all."""
    memories = {one.memory_id: one for one, _ in rows}
    c, cover = _keywords({one: tokens(m.content) for one, m in memories.items()}, tokens(text))
    d = _vectors({one.memory_id: v for one, v in rows if v is not None}, query)
    following = {a: b for a, b in _links(memories) if {a, b} <= allowed}
    previous = {b: a for a, b in following.items()}
    speaker = {one: speaker_of(m) for one, m in memories.items() if m.is_verbatim}
    speakers = set(speaker.values()) - {""}
    named = [name for name in speakers if is_named(name, text.casefold())]

    def evidence(one: str | None) -> float:
        return 0.0 if one is None else c[one] + 0.4 * d.get(one, 0.0)

    def around(one: str, links: Mapping[str, str]) -> list[str]:
        steps: list[str] = []
        step = links.get(one)
        while step is not None and len(steps) < 3:
            steps.append(step)
            step = links.get(step)
        return steps

    scores = {}
    for one in allowed:
        if memories[one].role is Role.ASSISTANT:
            continue
        before, after = around(one, previous), around(one, following)
        alone = not before and not after
        keep = 0.5 if after and asks(memories[one].content) else 1.0
        own = (c[one] + (0.25 + 1.6 * (1 - cover)) * d.get(one, 0.0)) * keep * (1.5 if alone else 1)
        near = 0.3 * (evidence(_at(before, 1)) + evidence(_at(after, 1)))
        near += 0.2 * evidence(_at(after, 0))
        if before and asks(memories[before[0]].content):
            near += 0.5 * evidence(before[0])
        peak = 0.0 if alone else 0.5 * max(c[other] for other in (one, *before, *after))
        is_speaker = len(speakers) > 1 and len(named) == 1 and speaker.get(one) == named[0]
        scores[one] = 1 - exp(-(own + near + peak + 0.05 * is_speaker))
    return scores


def _at(steps: Sequence[str], position: int) -> str | None:
    return steps[position] if position < len(steps) else None


def _keywords(
    words: Mapping[str, Sequence[str]], asked: Sequence[str]
) -> tuple[Mapping[str, float], float]:
    count = len(words)
    average = max(1.0, sum(map(len, words.values())) / max(1, count))
    wanted = {t: sum(t in row for row in words.values()) for t in asked}
    idf = {t: log(1 + (count - df + 0.5) / (df + 0.5)) for t, df in wanted.items()}
    best = sum(idf.values())
    if not best:
        return dict.fromkeys(words, 0.0), 0.0
    c = {}
    for one, row in words.items():
        room = 0.9 * (0.6 + 0.4 * len(row) / average)
        c[one] = sum(idf[t] * row.count(t) / (row.count(t) + room) for t in idf) / best
    return c, sum(idf[t] for t, df in wanted.items() if df) / best


def _vectors(vectors: Mapping[str, Vector], query: Vector | None) -> Mapping[str, float]:
    if query is None or not vectors:
        return {}
    mean = np.mean(list(vectors.values()), axis=0, dtype=np.float64)
    mean *= len(vectors) / (len(vectors) + 20)
    asked = query - mean
    return {
        one: max(
            0.0, float(asked @ (v - mean)) / float(np.linalg.norm(asked) * np.linalg.norm(v - mean))
        )
        for one, v in vectors.items()
    }


def _links(memories: Mapping[str, Memory]) -> list[tuple[str, str]]:
    turns = sorted(
        (m.conversation_id, m.occur_time, one)
        for one, m in memories.items()
        if m.is_verbatim and m.conversation_id and m.occur_time is not None
    )
    return [
        (a[2], b[2])
        for a, b in pairwise(turns)
        if a[0] == b[0] and (b[1] - a[1]).total_seconds() <= 3600
    ]
