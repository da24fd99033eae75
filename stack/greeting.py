"""What `memory-stack up` prints once everything runs: addresses and things to try."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stack.plan import Addresses


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a caller must send: an API key to the gateway, a token to the memory service."""

    key: bool = False
    token: bool = False

    @staticmethod
    def of(environment: Mapping[str, str]) -> "Secrets":
        """Say what the services of this environment ask for."""
        return Secrets(
            key=bool(environment.get("GATEWAY_API_KEYS_FILE")),
            token=bool(environment.get("MEMORY_SERVICE_TOKEN")),
        )


def greeting(
    addresses: Addresses,
    data: Path,
    *,
    user: str,
    questions: tuple[str, ...],
    secrets: Secrets = Secrets(),
) -> str:
    """Give the text; every command in it can be pasted into a shell as it stands.

    Secrets are never in it: a shell takes them from GATEWAY_KEY and MEMORY_SERVICE_TOKEN.
    """
    chats = "\n".join(_chat(addresses.gateway, user, one, secrets) for one in questions)
    retrieve = {"user_id": user, "query": questions[0], "explain": True}
    return f"""
memory   grpc {addresses.memory}      memory_service.v1.MemoryService
agent    grpc {addresses.agent}      agent_service.v1.AgentService
gateway  http://{addresses.gateway}      API at http://{addresses.gateway}/docs
data     {data}      (delete the folder to begin anew)

{_hints(secrets)}Chat, as a stream:
{chats}

Retrieve, by the Python client:
{_python_client(addresses.memory, user, questions[0], secrets)}

Retrieve, by grpcurl:
grpcurl -plaintext{_header(secrets.token, "MEMORY_SERVICE_TOKEN")} -d {_json(retrieve)} \\
  {addresses.memory} memory_service.v1.MemoryService/Retrieve

Ctrl-C stops everything.
"""


def _chat(gateway: str, user: str, question: str, secrets: Secrets) -> str:
    body = _json({"user_id": user, "message": question})
    url = f"http://{gateway}/api/v1/agent/chat"
    key = _header(secrets.key, "GATEWAY_KEY")
    return f"curl -N {url} -H 'content-type: application/json'{key} \\\n  -d {body}"


def _header(needed: bool, variable: str) -> str:  # noqa: FBT001 — named by its place
    return f' -H "authorization: Bearer ${variable}"' if needed else ""


def _hints(secrets: Secrets) -> str:
    lines = []
    if secrets.key:
        lines.append("GATEWAY_KEY must hold a key of this user (`gateway keys create --user …`)")
    if secrets.token:
        lines.append("MEMORY_SERVICE_TOKEN must hold the token of the memory service")
    return "".join(f"In the shell, {line}.\n" for line in lines)


def _python_client(memory: str, user: str, question: str, secrets: Secrets) -> str:
    bearer = "f\"Bearer {os.environ['MEMORY_SERVICE_TOKEN']}\""
    more = f', metadata=[("authorization", {bearer})]' if secrets.token else ""
    request = f"user_id={_quoted(user)}, query={_quoted(question)}, explain=True"
    return f"""{shlex.quote(sys.executable)} - <<'END'
import os, grpc
from memory_service.v1 import memory_pb2 as pb, memory_pb2_grpc as rpc
with grpc.insecure_channel("{memory}") as channel:
    memory = rpc.MemoryServiceStub(channel)
    answer = memory.Retrieve(pb.RetrieveRequest({request}), timeout=5{more})
for item in answer.items:
    print(f"{{item.score:5.2f}}", pb.MemoryType.Name(item.memory.memory_type), item.memory.content)
END"""


def _json(body: object) -> str:
    return shlex.quote(json.dumps(body, ensure_ascii=False))


def _quoted(text: str) -> str:
    """Give a Python literal; JSON's are."""
    return json.dumps(text, ensure_ascii=False)
