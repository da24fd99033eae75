"""The command line: settings, keys, exit codes."""

import json
import os
from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.settings import GatewaySettings
from rpc.knobs import unknown_variables


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GATEWAY_") or name.endswith("_SERVICE_TOKEN"):
            monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "api-keys.json"
    monkeypatch.setenv("GATEWAY_API_KEYS_FILE", str(path))
    return path


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_key_is_printed_once_and_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "create", "--user", "ann", "--name", "laptop"]) == 0
    created = capsys.readouterr()
    assert created.out.startswith("msk_")
    assert created.out.count("\n") == 1
    assert "ann" in created.err
    assert main(["keys", "list"]) == 0
    listed = capsys.readouterr().out
    assert created.out.strip() not in listed
    key_id, user, _, state, name = listed.strip().split("\t")
    assert (user, state, name) == ("ann", "valid", "laptop")
    assert main(["keys", "revoke", key_id]) == 0
    assert main(["keys", "list", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["revoke_time"]
    assert "sha256" not in shown
    assert main(["keys", "list"]) == 0
    assert "revoked 20" in capsys.readouterr().out
    assert file.exists()


def test_keys_need_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "list"]) == 2
    assert "GATEWAY_API_KEYS_FILE" in one_line(capsys)
    assert main(["keys", "--file", str(tmp_path / "k"), "list"]) == 0


def test_what_cannot_be_done_is_one_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "revoke", "nobody"]) == 1
    assert "no valid key nobody" in one_line(capsys)
    assert main(["keys", "create", "--user", "a\nb"]) == 2
    assert "control characters" in one_line(capsys)
    file.write_text("{")
    assert main(["keys", "list"]) == 2
    assert "no readable file" in one_line(capsys)
    assert main(["keys", "--file", "/proc/nowhere/k", "create", "--user", "ann"]) == 1
    assert "nowhere" in one_line(capsys)


def test_config_shows_every_setting_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_SERVICE_TOKEN", "hush")
    monkeypatch.setenv("GATEWAY_ALLOWED_HOSTS", "a.example, b.example")
    assert main(["config"]) == 0
    shown = capsys.readouterr().out
    assert "GATEWAY_LISTEN=127.0.0.1:8080\n" in shown
    assert "AGENT_SERVICE_TOKEN=***\n" in shown
    assert "MEMORY_SERVICE_TOKEN=\n" in shown
    assert "GATEWAY_API_KEYS_FILE=\n" in shown
    assert "GATEWAY_ALLOWED_HOSTS=a.example,b.example\n" in shown
    assert main(["config", "--json"]) == 0
    knobs = json.loads(capsys.readouterr().out)
    assert knobs["GATEWAY_HEARTBEAT"]["value"] == 10.0
    assert all(knob["description"] for knob in knobs.values())


def test_config_shows_the_file_of_keys(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    assert f"GATEWAY_API_KEYS_FILE={file}\n" in capsys.readouterr().out


def test_a_setting_that_is_not_acceptable_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_HEARTBEAT", "16")
    assert main(["config"]) == 2
    assert one_line(capsys).startswith("gateway: GATEWAY_HEARTBEAT: ")


def test_a_variable_that_is_no_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_LISTENN", "x")
    assert main(["config"]) == 0
    assert "GATEWAY_LISTENN is no setting" in one_line(capsys)
    assert unknown_variables(GatewaySettings, ["GATEWAY_X", "GATEWAY_LISTEN", "OTHER"]) == [
        "GATEWAY_X"
    ]


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("0.0.0.0:8080", "refusing to listen on 0.0.0.0:8080 without authentication"),
        (":8080", "refusing to listen on [::]:8080 without authentication"),
        ("gateway.example:8080", "without authentication"),
        ("8080", "is not an address to listen on"),
        ("unix:/tmp/gateway", "listens over TCP"),
    ],
)
def test_an_address_that_others_reach_is_refused_without_authentication(
    listen: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_LISTEN", listen)
    assert main(["serve"]) == 2
    assert said in one_line(capsys)


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["keys"], ["keys", "create"], ["keys", "revoke"]]
)
def test_a_command_line_that_is_none_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_help_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert all(command in capsys.readouterr().out for command in ("serve",))
