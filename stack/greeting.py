"""What `memory-stack up` prints once everything runs: addresses and things to try."""

import json
import shlex
import sys
from pathlib import Path

from stack.plan import Addresses


def greeting(addresses: Addresses, data: Path, *, user: str, questions: tuple[str, ...]) -> str:
    """Give the text; every command in it can be pasted into a shell as it stands."""
    chats = "\n".join(_chat(addresses.gateway, user, question) for question in questions)
    retrieve = {"user_id": user, "query": questions[0], "explain": True}
    return f"""
memory   grpc {addresses.memory}      memory_service.v1.MemoryService
agent    grpc {addresses.agent}      agent_service.v1.AgentService
gateway  http://{addresses.gateway}      API at http://{addresses.gateway}/docs
data     {data}      (delete the folder to begin anew)

Chat, as a stream:
{chats}

Retrieve, by the Python client:
{_python_client(addresses.memory, user, questions[0])}

Retrieve, by grpcurl:
grpcurl -plaintext -d {_json(retrieve)} \\
  {addresses.memory} memory_service.v1.MemoryService/Retrieve

Ctrl-C stops everything.
"""


def _chat(gateway: str, user: str, question: str) -> str:
    body = _json({"user_id": user, "message": question})
    url = f"http://{gateway}/api/v1/agent/chat"
    return f"curl -N {url} -H 'content-type: application/json' \\\n  -d {body}"


def _python_client(memory: str, user: str, question: str) -> str:
    request = f"user_id={_quoted(user)}, query={_quoted(question)}, explain=True"
    return f"""{shlex.quote(sys.executable)} - <<'END'
import grpc
from memory_service.v1 import memory_pb2 as pb, memory_pb2_grpc as rpc
with grpc.insecure_channel("{memory}") as channel:
    memory = rpc.MemoryServiceStub(channel)
    answer = memory.Retrieve(pb.RetrieveRequest({request}), timeout=5)
for item in answer.items:
    print(f"{{item.score:5.2f}}", pb.MemoryType.Name(item.memory.memory_type), item.memory.content)
END"""


def _json(body: object) -> str:
    return shlex.quote(json.dumps(body, ensure_ascii=False))


def _quoted(text: str) -> str:
    """Give a Python literal; JSON's are."""
    return json.dumps(text, ensure_ascii=False)
