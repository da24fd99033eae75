"""What memory-stack will start, and what compose is told."""

import json
import re
import shlex
import stat
from pathlib import Path

import pytest
import yaml

from stack.compose_env import NAMES, write
from stack.greeting import Secrets, greeting
from stack.plan import Addresses, programs

ROOT = Path(__file__).parents[3]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def test_memory_starts_before_the_agent_and_the_gateway_comes_last() -> None:
    started = programs(Addresses(), Path("/d"), {})
    assert [program.name for program in started] == ["memory", "agent", "gateway"]


def test_each_program_is_told_where_the_ones_it_needs_are() -> None:
    memory, agent, gateway = programs(Addresses("m:1", "a:2", "g:3"), Path("/d"), {})
    assert memory.environment["MEMORY_LISTEN"] == "m:1"
    assert agent.environment["AGENT_MEMORY_TARGET"] == "m:1"
    assert gateway.environment["GATEWAY_AGENT_TARGET"] == "a:2"
    assert gateway.environment["GATEWAY_MEMORY_TARGET"] == "m:1"


def test_databases_and_models_of_the_environment_are_kept() -> None:
    given = {"MEMORY_DATABASE_URL": "mysql+pymysql://db/m", "MEMORY_DATA_DIR": "/own"}
    for program in programs(Addresses(), Path("/d"), given):
        assert program.environment["MEMORY_DATABASE_URL"] == given["MEMORY_DATABASE_URL"]
        assert program.environment["MEMORY_DATA_DIR"] == "/own"


@pytest.mark.parametrize(
    ("url", "migrates"),
    [("", False), ("sqlite:////own/memory.db", False), ("mysql+pymysql://db/m", True)],
)
def test_a_database_on_a_server_is_migrated_by_command(url: str, migrates: bool) -> None:  # noqa: FBT001
    names = ("MEMORY_DATABASE_URL", "AGENT_DATABASE_URL")
    memory, agent, gateway = programs(Addresses(), Path("/d"), dict.fromkeys(names, url))
    assert (memory.migrates, agent.migrates, gateway.migrates) == (migrates, migrates, False)


def test_printed_commands_keep_what_a_shell_would_take_apart() -> None:
    question = """What's "this" $(costing)?"""
    text = greeting(Addresses(), Path("/d"), user="u", questions=(question,))
    (curl,) = re.findall(r"^curl .*?\n.*?$", text, re.MULTILINE)
    words = shlex.split(curl)
    assert json.loads(words[words.index("-d") + 1]) == {"user_id": "u", "message": question}


def test_the_greeting_names_every_address_and_the_data_folder() -> None:
    text = greeting(Addresses("m:1", "a:2", "g:3"), Path("/d"), user="u", questions=("q?",))
    assert all(word in text for word in ("m:1", "a:2", "http://g:3", "/d", "curl -N", "grpcurl"))


HUSH = {"GATEWAY_API_KEYS_FILE": "/own/hush.json", "MEMORY_SERVICE_TOKEN": "hush"}


def greeted(environment: dict[str, str]) -> str:
    secrets = Secrets.of(environment)
    return greeting(Addresses(), Path("/d"), user="u", questions=("q?",), secrets=secrets)


def test_examples_send_what_the_environment_asks_for_and_never_show_it() -> None:
    text = greeted(HUSH)
    (curl,) = re.findall(r"^curl .*?\n.*?$", text, re.MULTILINE)
    (grpcurl,) = re.findall(r"^grpcurl .*$", text, re.MULTILINE)
    assert "authorization: Bearer $GATEWAY_KEY" in shlex.split(curl)
    assert "authorization: Bearer $MEMORY_SERVICE_TOKEN" in shlex.split(grpcurl.rstrip("\\"))
    assert """f"Bearer {os.environ['MEMORY_SERVICE_TOKEN']}\"""" in text
    assert "In the shell, GATEWAY_KEY must hold a key of this user" in text
    assert "In the shell, MEMORY_SERVICE_TOKEN must hold the token" in text
    assert "hush" not in text


def test_examples_send_nothing_that_nobody_asks_for() -> None:
    text = greeted({})
    assert "Bearer" not in text
    assert "must hold" not in text


@pytest.mark.parametrize("environment", [{}, HUSH])
def test_the_printed_python_client_is_python(environment: dict[str, str]) -> None:
    (code,) = re.findall(r"<<'END'\n(.*?)\nEND$", greeted(environment), re.MULTILINE | re.DOTALL)
    compile(code, "printed", "exec")


def test_compose_env_writes_distinct_secrets_for_its_owner_only(tmp_path: Path) -> None:
    target = tmp_path / ".env"
    assert write(target)
    values = dict(line.split("=", 1) for line in target.read_text(encoding="ascii").splitlines())
    assert set(values) == set(NAMES)
    assert len(set(values.values())) == len(NAMES)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_compose_env_never_overwrites(tmp_path: Path) -> None:
    target = tmp_path / ".env"
    target.write_text("MINE=1\n", encoding="ascii")
    assert not write(target)
    assert target.read_text(encoding="ascii") == "MINE=1\n"


def test_compose_reads_every_secret_from_the_env_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+):\?", text)) == set(NAMES)
    for line in text.splitlines():
        if re.search(r"(PASSWORD|TOKEN|SECRET\w*|API_KEY):", line):
            assert "${" in line, line


def test_compose_publishes_nothing_beyond_the_gateway_on_loopback() -> None:
    published = {name: s["ports"] for name, s in COMPOSE["services"].items() if "ports" in s}
    assert published == {"gateway": ["127.0.0.1:8080:8080"]}


def test_compose_checks_the_health_of_every_server() -> None:
    servers = {name for name in COMPOSE["services"] if not name.endswith("-migrate")}
    checked = {name for name, service in COMPOSE["services"].items() if "healthcheck" in service}
    assert servers - checked == {"ollama"}


def test_compose_waits_for_what_cannot_be_missed_and_for_nothing_else() -> None:
    needs = COMPOSE["services"]["memory"]["depends_on"]
    assert "milvus" not in needs
    assert needs["memory-migrate"] == {"condition": "service_completed_successfully"}


def test_compose_keeps_every_store_in_a_volume_that_it_declares() -> None:
    used = {
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service.get("volumes", [])
    }
    assert used == set(COMPOSE["volumes"])
