#!/bin/sh
# Generates the code of the contract anew and compares it with what is committed.
set -eu
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
PATH="$BIN:$PATH" "$BIN/python" -m grpc_tools.protoc -I protos \
	--python_out="$new" --grpc_python_out="$new" --mypy_out=quiet:"$new" --mypy_grpc_out=quiet:"$new" "$@"
for service in memory_service agent_service; do
	diff -r -x __init__.py -x __pycache__ "$new/$service/v1" "$service/v1"
done
