"""History: requests, and changes as answers show them."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.codec.checks import Checks
from memory_service.codec.ingest import decision_message
from memory_service.codec.memories import MAX_ANSWER_BYTES, memory_message, timestamp
from memory_service.codec.pages import about, fitting, number, place
from memory_service.codec.requests import mutation
from memory_service.codec.words import OPERATION_OF
from memory_service.domain.change import PastChange
from memory_service.domain.model import Memory
from memory_service.ports import RequestKey
from memory_service.v1 import memory_pb2 as pb
from rpc.fields import items_of_page
from rpc.page_tokens import page_token


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """A page that is asked for; about is what its tokens are bound to."""

    user_id: str
    memory_id: str
    size: int
    before: int
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversion:
    """A memory to bring back to a version."""

    user_id: str
    memory_id: str
    version: int


def list_history_request(request: pb.ListMemoryHistoryRequest) -> HistoryPage:
    """Read ListMemoryHistory. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    memory_id = check.name("memory_id", request.memory_id)
    size = items_of_page(check.not_negative("page_size", request.page_size))
    of = about("ListMemoryHistory", user_id, memory_id)
    before = number(check, place(check, request.page_token, of))
    check.passed()
    return HistoryPage(user_id=user_id, memory_id=memory_id, size=size, before=before, about=of)


def list_history_response(
    changes: Sequence[PastChange], page: HistoryPage
) -> pb.ListMemoryHistoryResponse:
    """Give a page of what was read: one change more than the page's size if there are more."""
    taken = fitting(entry_message(change) for change in changes[: page.size])
    response = pb.ListMemoryHistoryResponse(entries=taken)
    if len(taken) < len(changes):
        last = changes[len(taken) - 1]
        response.next_page_token = page_token(str(last.entry_id), *page.about)
    return response


def revert_request(request: pb.RevertMemoryRequest) -> tuple[Reversion, RequestKey]:
    """Read RevertMemory. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, "RevertMemory")
    memory_id = check.identifier("memory_id", request.memory_id)
    if request.to_version < 1:
        check.refuse("to_version", "must be a version of the memory, from 1")
    check.passed()
    return Reversion(user_id=user_id, memory_id=memory_id, version=request.to_version), key


def revert_answer(memory: Memory) -> bytes:
    """Keep what RevertMemory answers."""
    answer = pb.RevertMemoryResponse(memory=memory_message(memory))
    return answer.SerializeToString(deterministic=True)


def watch_request(request: pb.WatchMemoriesRequest) -> tuple[str, int | None]:
    """Read WatchMemories: user_id, after_revision. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    given = request.HasField("after_revision")
    after = check.not_negative("after_revision", request.after_revision) if given else None
    check.passed()
    return user_id, after


def watch_response(revision: int, changes: Sequence[PastChange]) -> pb.WatchMemoriesResponse:
    """Give a revision with all its changes, less of each where the message would be too large."""
    entries = [entry_message(change) for change in changes]
    response = pb.WatchMemoriesResponse(revision=revision, entries=entries)
    for field in ("before", "decision", "after"):
        if response.ByteSize() > MAX_ANSWER_BYTES:
            for entry in response.entries:
                entry.ClearField(field)
    return response


def entry_message(change: PastChange) -> pb.HistoryEntry:
    """Give a change as answers show it."""
    return pb.HistoryEntry(
        memory_id=change.memory_id,
        revision=change.revision,
        operation=OPERATION_OF[change.operation],
        actor=change.actor,
        reason=change.reason,
        before=None if change.before is None else memory_message(change.before),
        after=None if change.after is None else memory_message(change.after),
        decision=None if change.decision is None else decision_message(change.decision),
        create_time=timestamp(change.create_time),
    )
