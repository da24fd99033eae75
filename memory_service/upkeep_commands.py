"""The commands of upkeep: sweep, purge, reconcile, drop-collection."""

import argparse
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from memory_service.app import open_app
from memory_service.app.parts import make_relay
from memory_service.app.upkeep import make_reconcile, open_upkeep
from memory_service.codec.checks import Checks
from memory_service.settings import OFF, Settings
from memory_service.upkeep.dedup import sweep_duplicates
from memory_service.upkeep.expiry import sweep_expired
from memory_service.upkeep.purge import purge
from memory_service.upkeep.reconcile import reconcile
from memory_service.upkeep.sweeping import Progress
from rpc.ids import utc_now
from rpc.knobs import BAD_SETTINGS
from rpc.lines import DONE, FAILED, complain, tell

PROGRAM = "memory-service"
_SAID_EVERY = 1.0
"""Seconds between lines of progress."""


async def sweep(settings: Settings, options: argparse.Namespace) -> int:
    """Delete what has expired, then archive duplicates; or one of these."""
    user_id = _user(options)
    if options.what == "expired" and (options.dry_run or user_id):
        complain(PROGRAM, "sweep expired is of all users and for good: no --user, no --dry-run")
        return BAD_SETTINGS
    only_duplicates = options.what == "duplicates" or options.dry_run or user_id
    counts: dict[str, int] = {}
    async with open_upkeep(settings) as (_, upkeep):
        if not only_duplicates:
            counts |= await _run(sweep_expired(upkeep.expiry))
        if options.what != "expired":
            dedup = replace(upkeep.dedup, dry_run=options.dry_run, user_id=user_id)
            found = _named(sweep_duplicates(dedup), options) if options.dry_run else None
            counts |= await _run(found or sweep_duplicates(dedup))
    _tell(counts, options)
    return DONE


async def purge_old(settings: Settings, options: argparse.Namespace) -> int:
    """Remove for good what is too old."""
    async with open_upkeep(settings) as (_, upkeep):
        _tell(await _run(purge(upkeep.purge)), options)
    return DONE


async def reconcile_index(settings: Settings, options: argparse.Namespace) -> int:
    """Compare SQL with the index, and tell the index where they differ."""
    user_id = _user(options)
    if settings.milvus_address == OFF:
        return _no_index()
    async with open_app(settings) as app:
        assert app.index is not None  # noqa: S101 — for the type checker: it is not off
        compared = make_reconcile(app.store, app.index, utc_now, user_id=user_id)
        counts = await _run(reconcile(compared))
        relay = make_relay(settings, app.store, app.embedder, app.index, utc_now)
        while await relay.step():
            pass
        _tell(counts | {"waiting": await app.store.outbox.depth()}, options)
    return DONE


async def drop_collections(settings: Settings, options: argparse.Namespace) -> int:
    """Drop collections that no embedder in use fills any more; without a name, list them."""
    if settings.milvus_address == OFF:
        return _no_index()
    async with open_app(settings) as app:
        assert app.index is not None  # noqa: S101 — for the type checker: it is not off
        others = await app.index.others()
        named = others if options.old else options.name
        unknown = sorted(set(named).difference(others))
        if unknown:
            complain(PROGRAM, f"no old collection of ours: {', '.join(unknown)}")
            return FAILED
        if named and not await app.store.collections.ready(app.index.collection):
            complain(PROGRAM, f"{app.index.collection} is not complete: run `reindex` first")
            return FAILED
        for name in named:
            await app.index.drop(name)
        report = {"current": app.index.collection, "old": others, "dropped": list(named)}
        tell(json.dumps(report) if options.json else _listed(report))
    return DONE


def _user(options: argparse.Namespace) -> str:
    """Give the user that is named; empty: none is, so all are meant. Raises InvalidRequest."""
    if options.user is None:
        return ""
    check = Checks()
    user_id = check.identifier("user_id", options.user)
    check.passed()
    return user_id


async def _run(progresses: AsyncIterator[Progress]) -> dict[str, int]:
    """Run a sweep to its end, saying now and then on stderr how far it is; gives its counts."""
    counts: Mapping[str, int] = {}
    said = time.monotonic()
    async for progress in progresses:
        counts = progress.counts
        if time.monotonic() - said > _SAID_EVERY:
            said = time.monotonic()
            sys.stderr.write(f"{PROGRAM}: {_words(counts)}\n")
    return dict(counts)


async def _named(
    progresses: AsyncIterator[Progress], options: argparse.Namespace
) -> AsyncIterator[Progress]:
    """Tell which memories would be archived, by their ids."""
    async for progress in progresses:
        for one in progress.found:
            found = {"user_id": progress.user_id, "memory_id": one.memory_id, "kept": one.kept}
            words = f"{progress.user_id}: {one.memory_id} says what {one.kept} says"
            tell(json.dumps(found) if options.json else words)
        yield progress


def _tell(counts: Mapping[str, int], options: argparse.Namespace) -> None:
    tell(json.dumps(counts) if options.json else _words(counts))


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counts.items())


def _listed(report: Mapping[str, object]) -> str:
    return "; ".join(f"{what}: {_joined(names) or 'none'}" for what, names in report.items())


def _joined(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else str(names)


def _no_index() -> int:
    complain(PROGRAM, "MEMORY_MILVUS_URI is off: there is no index")
    return BAD_SETTINGS
