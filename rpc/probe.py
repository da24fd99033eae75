"""Asks a server's health: `python -m rpc.probe HOST:PORT` exits 0 while it is SERVING, else 1."""

import argparse
import sys
from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2


def serving(address: str, *, within: float = 1.0) -> bool:
    """Tell whether the server at host:port says SERVING within that many seconds."""
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = check(health_pb2.HealthCheckRequest(), timeout=within)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code."""
    parser = argparse.ArgumentParser(prog="rpc.probe", description=__doc__)
    parser.add_argument("address", help="host:port of a gRPC server")
    parser.add_argument("--within", type=float, default=2.0, help="seconds to wait (default 2)")
    options = parser.parse_args(arguments)
    return 0 if serving(options.address, within=options.within) else 1


if __name__ == "__main__":
    sys.exit(main())
