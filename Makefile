# Every target makes what it needs from a plain python3 (3.11 or newer).
PYTHON ?= python3
# Compiled code is kept: the tests start many processes, and each would compile all of it again.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL_LOCKED := .ci/install $(VENV)
RESOLVE := $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	--no-emit-index-url --custom-compile-command 'make lock'
PROTOS := protos/memory_service/v1/memory.proto protos/agent_service/v1/agent.proto

.PHONY: help up demo test test-thorough test-unit check format proto proto-check bench lock compose-env clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL_LOCKED) requirements.lock
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $(READY)

$(TOOLS): $(READY) requirements-dev.lock
	$(INSTALL_LOCKED) requirements-dev.lock
	touch $(TOOLS)

up: $(READY)  ## run the three services on the embedded default (Ctrl-C stops them)
	@$(BIN)/memory-stack up $(ARGS)

demo: $(READY)  ## the same, with a small bilingual user in it
	@$(BIN)/memory-stack up --demo $(ARGS)

# The pure rules and the use cases are covered to the last branch; a run may miss one by its timing.
test: $(TOOLS)  ## every test, on SQLite + milvus-lite and on MariaDB + a Milvus server
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n 2 $(ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --fail-under=95
	$(BIN)/python -m coverage report --skip-covered --precision=2 --fail-under=99.9 --include='memory_service/domain/*,memory_service/retrieve/*,memory_service/remember/*,memory_service/consolidate/*,memory_service/upkeep/*,agent_service/domain/*,agent_service/chat/*,agent_service/conversations.py,agent_service/outbox/*'

test-thorough: $(TOOLS)  ## the property tests with 1,000 inputs each instead of 30
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=thorough tests/unit tests/contract -m 'not mariadb and not milvus_server' $(ARGS)

test-unit: $(TOOLS)  ## the tests that need no server and no file
	$(BIN)/python -m pytest tests/unit $(ARGS)

check: $(TOOLS) proto-check  ## format, lint, types, import directions, contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(TOOLS)  ## format the code and the contract
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/buf format -w protos

proto: $(TOOLS)  ## generate the Python code of the contract
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I protos \
		--python_out=. --grpc_python_out=. --mypy_out=quiet:. --mypy_grpc_out=quiet:. $(PROTOS)

proto-check: $(TOOLS)  ## the contract: lint, format, compatibility, and drift of the generated code
	cd protos && ../$(BIN)/buf lint && ../$(BIN)/buf format --diff --exit-code
	sh protos/compatible.sh $(CURDIR)/$(BIN)/buf
	BIN="$(CURDIR)/$(BIN)" sh protos/drift.sh $(PROTOS)

bench: $(TOOLS)  ## recall, latency and context; recall needs DATA=path of the data sets
	$(BIN)/python -m benchmarks.latency
	$(BIN)/python -m benchmarks.context
	$(BIN)/python -m benchmarks.extraction
	$(if $(DATA),$(BIN)/python -m benchmarks.recall $(DATA),@echo 'recall: set DATA=path, see docs/benchmarks.md')

lock: $(TOOLS)  ## resolve the dependencies anew
	$(RESOLVE) --group build pyproject.toml -o requirements.lock
	$(RESOLVE) --group dev --extra e5 -c requirements.lock pyproject.toml -o requirements-dev.lock

compose-env: ## write .env with fresh passwords and tokens for docker compose
	@$(PYTHON) stack/compose_env.py

clean:  ## remove what make created, and nothing else
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
