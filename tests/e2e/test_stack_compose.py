"""The services of docker-compose.yml, run as it says, with both rollback switches thrown."""

import subprocess
from collections.abc import Iterator

import grpc
import pytest

from rpc.errors import read_failure
from rpc.probe import serving
from stack.compose_env import write
from stack.processes import http_ready
from tests.e2e.compose import Compose, read_env
from tests.e2e.memories import user_of
from tests.e2e.people import Person, person_at
from tests.e2e.processes import poll
from tests.services.mariadb import MariaDB, free_port
from tests.services.milvus import Milvus
from tests.services.openai_server import OpenAIServer, openai_server, says

pytestmark = [pytest.mark.mariadb, pytest.mark.milvus_server]
SERVERS = ("memory", "agent", "gateway")
RULE = "用户对花生过敏。"
FACT = "User lives in Lyon, near the old harbour."


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with openai_server(says("好", "的。")) as server:
        yield server


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    return {name: free_port() for name in (*SERVERS, "memory metrics", "agent metrics")}


@pytest.fixture(scope="module")
def values(model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a deployer has in .env."""
    target = tmp_path_factory.mktemp("env") / ".env"
    assert write(target)
    return read_env(target) | {
        "AGENT_LLM_BASE_URL": model.base_url,
        "AGENT_LLM_API_KEY": "sk-test",
        "AGENT_LLM_MODEL": "scripted",
        "MEMORY_READ_MODE": "legacy",
        "AGENT_INJECT_RENDER_MODE": "flat",
    }


@pytest.fixture(scope="module")
def compose(
    values: dict[str, str],
    ports: dict[str, int],
    mariadb_server: MariaDB,
    milvus: Milvus,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Compose]:
    """All of it up and healthy, in the order of depends_on."""
    data = tmp_path_factory.mktemp("compose")
    addresses = {
        "mysql:3306": f"127.0.0.1:{mariadb_server.port}",
        "http://milvus:19530": milvus.uri,
        "0.0.0.0:9188": f"127.0.0.1:{ports['memory metrics']}",
        "0.0.0.0:9189": f"127.0.0.1:{ports['agent metrics']}",
    }
    for name, port in (("memory", 9088), ("agent", 9089), ("gateway", 8080)):
        for host in ("0.0.0.0", "127.0.0.1", name):  # noqa: S104 — replaced, not listened on
            addresses[f"{host}:{port}"] = f"127.0.0.1:{ports[name]}"
    compose = Compose(values, addresses, data)
    _begin_database(mariadb_server, compose, values["MYSQL_PASSWORD"])
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name in SERVERS:
            (data / name).mkdir()
            if name != "gateway":
                done = compose.run(compose.migrates_first(name))
                assert done.returncode == 0, done.stderr
            started.append(compose.up(name))
        for name, process in zip(SERVERS, started, strict=True):
            poll(
                lambda name=name, process=process: (  # type: ignore[misc]
                    _answers(name, ports[name]) or process.poll() is not None
                ),
                bool,
                within=120,
            )
            assert process.poll() is None, (data / f"{name}.log").read_text(encoding="utf-8")
        yield compose
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)


def _answers(name: str, port: int) -> bool:
    """Tell whether a service is ready, without the process that each of its own checks takes."""
    address = f"127.0.0.1:{port}"
    return http_ready(address) if name == "gateway" else serving(address)


def _begin_database(server: MariaDB, compose: Compose, password: str) -> None:
    """Do what the image of MySQL does from its environment, then what the file gives it to run."""
    server.execute("CREATE DATABASE memory")
    server.execute(f"CREATE USER 'memory'@'%' IDENTIFIED BY '{password}'")
    server.execute("GRANT ALL ON memory.* TO 'memory'@'%'")
    for statement in compose.config("agent_database").split(";"):
        if statement.strip():
            server.execute(statement)


@pytest.fixture(scope="module")
def key(compose: Compose) -> str:
    """A key, made as the file says."""
    made = compose.run("gateway", "python", "-m", "gateway", "keys", "create", "--user", "ann")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture
def ann(key: str, ports: dict[str, int]) -> Iterator[Person]:
    with person_at(f"127.0.0.1:{ports['gateway']}", "ann", key=key) as person:
        yield person


@pytest.mark.parametrize("name", SERVERS)
def test_each_service_is_healthy_by_its_own_check(compose: Compose, name: str) -> None:
    assert compose.healthy(name)


def test_who_has_no_key_or_a_bad_one_is_not_let_in(ports: dict[str, int], key: str) -> None:
    for wrong in ("", f"{key}x"):
        with person_at(f"127.0.0.1:{ports['gateway']}", "ann", key=wrong) as stranger:
            turn = stranger.chat("你好")
        assert (turn.status, turn.body["error"]["code"]) == (401, "UNAUTHENTICATED")


def test_a_key_speaks_for_its_own_user_only(ports: dict[str, int], key: str) -> None:
    with person_at(f"127.0.0.1:{ports['gateway']}", "ben", key=key) as ben:
        assert ben.chat("你好").status == 403


@pytest.mark.usefixtures("compose")
def test_services_take_no_call_without_the_token_of_env(
    ports: dict[str, int], values: dict[str, str]
) -> None:
    address = f"127.0.0.1:{ports['memory']}"
    with user_of(address) as stranger, pytest.raises(grpc.RpcError) as caught:
        stranger.retrieve("")
    assert read_failure(caught.value).code is grpc.StatusCode.UNAUTHENTICATED
    with user_of(address, token=values["MEMORY_SERVICE_TOKEN"]) as friend:
        friend.retrieve("", timeout=10)


def test_the_rollback_switches_alone_give_the_old_form(ann: Person, model: OpenAIServer) -> None:
    ann.remember(RULE, "CONSTRAINT")
    ann.remember(FACT)
    turn = ann.chat_when_well("我住在哪里？ Where do I live?")
    assert turn.text == "好的。"
    assert turn.kinds[-1] == "done"
    call = model.calls[-1]
    assert call.key == "Bearer sk-test"
    prompt = "\n".join(message["content"] for message in call.body["messages"])
    assert f"- [约束] {RULE}" in prompt
    assert "【" not in prompt
    assert "memories" in turn.components
    assert "constraints" not in turn.components
    assert turn.memory_types == {"CONSTRAINT", "FACT"}
    reasons = {source["leg"]: source["reason"] for source in turn.memory["sources"]}
    assert reasons["RETRIEVE_LEG_PINNED"] == reasons["RETRIEVE_LEG_KEYWORD"] == "legacy"
