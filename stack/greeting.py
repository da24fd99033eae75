"""What `memory-stack up` prints once everything runs: addresses and things to try."""

import json
from pathlib import Path

from stack.plan import Addresses


def greeting(addresses: Addresses, data: Path, *, user: str, question: str) -> str:
    """Give the text; every command in it can be pasted into a shell."""
    body = json.dumps({"user_id": user, "message": question}, ensure_ascii=False)
    chinese = json.dumps(
        {"user_id": user, "message": "周六晚上请朋友吃饭，怎么安排？"}, ensure_ascii=False
    )
    retrieve = json.dumps({"user_id": user, "query": question}, ensure_ascii=False)
    return f"""
memory   grpc {addresses.memory}      memory_service.v1.MemoryService
agent    grpc {addresses.agent}      agent_service.v1.AgentService
gateway  http://{addresses.gateway}      API at http://{addresses.gateway}/docs
data     {data}      (delete the folder to begin anew)

Chat, as a stream:
  curl -N http://{addresses.gateway}/api/v1/agent/chat -H 'content-type: application/json' \\
    -d '{body}'
  curl -N http://{addresses.gateway}/api/v1/agent/chat -H 'content-type: application/json' \\
    -d '{chinese}'

Retrieve, from Python ({Path(".venv/bin/python")}):
  import grpc; from memory_service.v1 import memory_pb2 as pb, memory_pb2_grpc as rpc
  memory = rpc.MemoryServiceStub(grpc.insecure_channel("{addresses.memory}"))
  print(memory.Retrieve(pb.RetrieveRequest(user_id="{user}", query="{question}", explain=True)))

With grpcurl:
  grpcurl -plaintext -d '{retrieve}' \\
    {addresses.memory} memory_service.v1.MemoryService/Retrieve

Ctrl-C stops everything.
"""
