"""Settings: read from the environment, and checked together."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from agent_service.settings import SYSTEM_PROMPT, AgentSettings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENT_LISTEN", "AGENT_DATABASE_URL", "AGENT_DATA_DIR", "MEMORY_SERVICE_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_the_defaults_run_on_a_fresh_machine() -> None:
    settings = AgentSettings()

    assert settings.listen == "127.0.0.1:9089"
    assert settings.sqlalchemy_url == "sqlite:///data/agent.db"
    assert settings.on_sqlite
    assert (settings.context_window, settings.reserved_output) == (32768, 4096)
    assert (settings.memory_target, settings.memory_cut) == ("127.0.0.1:9088", "gate")
    assert settings.inject_render_mode == "typed_v2"
    assert (settings.recall_timeout, settings.heartbeat, settings.resume_grace) == (0.8, 1.0, 0.0)
    assert (settings.relay, settings.relay_lease, settings.relay_max_tries) == (True, 30.0, 20)
    assert settings.instructions() == SYSTEM_PROMPT


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_DATABASE_URL", "mysql+pymysql://u:p@db/agent")
    monkeypatch.setenv("AGENT_LLM_MODEL", "")
    monkeypatch.setenv("MEMORY_SERVICE_TOKEN", "shared")
    monkeypatch.setenv("AGENT_RECALL_TIMEOUT", "0.3")
    monkeypatch.setenv("AGENT_RELAY", "off")
    monkeypatch.setenv("AGENT_RELAY_POLL", "2")

    settings = AgentSettings()

    assert settings.sqlalchemy_url == "mysql+pymysql://u:p@db/agent"
    assert not settings.on_sqlite
    assert settings.memory_token.get_secret_value() == "shared"
    assert settings.recall_timeout == 0.3
    assert (settings.relay, settings.relay_poll) == (False, 2.0)
    assert settings.llm_model == ""


def test_secrets_do_not_show() -> None:
    settings = AgentSettings(
        llm_api_key=SecretStr("sk-secret"),
        service_token=SecretStr("t-secret"),
        database_url=SecretStr("mysql://u:p-secret@h/d"),
    )
    shown = repr(settings)

    assert "secret" not in shown.replace("SecretStr", "")


def test_every_knob_says_what_it_is() -> None:
    assert [name for name, knob in AgentSettings.model_fields.items() if not knob.description] == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"lease": 2.9, "heartbeat": 1.0}, "AGENT_LEASE"),
        ({"context_window": 4096}, "AGENT_CONTEXT_WINDOW"),
        ({"llm_max_output_tokens": 4097}, "AGENT_LLM_MAX_OUTPUT_TOKENS"),
        ({"llm_thinking_form": "loud"}, "llm_thinking_form"),
        ({"memory_cut": "hard"}, "memory_cut"),
        ({"recall_timeout": 0}, "recall_timeout"),
        ({"recall_timeout": float("nan")}, "recall_timeout"),
        ({"busy_wait": float("inf")}, "busy_wait"),
    ],
)
def test_what_does_not_fit_is_named(fields: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        AgentSettings(**fields)  # type: ignore[arg-type]


def test_instructions_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text("  你是助手。\n", encoding="utf-8")

    assert AgentSettings(system_prompt_file=file).instructions() == "你是助手。"
