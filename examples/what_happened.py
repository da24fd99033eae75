"""Tell what happened to a user's memories, or bring a version of one back.

python examples/what_happened.py USER
python examples/what_happened.py USER --revert MEMORY_ID VERSION
"""

import argparse
import sys
import uuid
from collections.abc import Sequence

import grpc

from memory_service.v1 import memory_pb2 as pb
from memory_service.v1.memory_pb2_grpc import MemoryServiceStub

DONE, FAILED, MISUSED = 0, 1, 2
LAST_VERSION = 2**63 - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code; what went wrong is one line on stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("user")
    parser.add_argument("--revert", nargs=2, metavar=("MEMORY_ID", "VERSION"))
    parser.add_argument("--memory", default="127.0.0.1:9088", help="host:port of the service")
    options = parser.parse_args(arguments)
    memory_id, text = options.revert or ("", "1")
    version = int(text) if text.isdecimal() else 0
    if not 1 <= version <= LAST_VERSION:
        sys.stderr.write(f"what_happened: {text!r} is no version: it is a number from 1\n")
        return MISUSED
    try:
        with grpc.insecure_channel(options.memory) as channel:
            memory = MemoryServiceStub(channel)
            if options.revert:
                revert(memory, options.user, memory_id, version)
            tell(memory, options.user)
    except grpc.RpcError as error:
        said = " ".join((error.details() or "").split())
        sys.stderr.write(f"what_happened: {error.code().name}: {said}\n")
        return FAILED
    return DONE


def revert(memory: MemoryServiceStub, user: str, memory_id: str, version: int) -> None:
    """Give a memory the values and status that it had at a version."""
    request = pb.RevertMemoryRequest(
        user_id=user, request_id=str(uuid.uuid4()), memory_id=memory_id, to_version=version
    )
    memory.RevertMemory(request)


def tell(memory: MemoryServiceStub, user: str) -> None:
    """Print the newest changes, each with what decided it."""
    for entry in memory.ListMemoryHistory(pb.ListMemoryHistoryRequest(user_id=user)).entries:
        operation = pb.HistoryOperation.Name(entry.operation).removeprefix("HISTORY_OPERATION_")
        print(f"{entry.memory_id} v{entry.after.version}  {operation} by the {entry.actor}")
        print(f"    {entry.after.content}")
        print(f"    because: {entry.reason}")
        if entry.after.superseded_by:
            print(f"    replaced by {entry.after.superseded_by}")
        for candidate in entry.decision.candidates:
            print(f"    {candidate.relation} to {candidate.memory_id}, {candidate.score:.2f} alike")


if __name__ == "__main__":
    sys.exit(main())
