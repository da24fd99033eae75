import os

import pytest
from pydantic import ValidationError

from memory_service.settings import OFF, Settings
from rpc.knobs import shown, unknown_variables


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in unknown_variables(Settings, os.environ):
        monkeypatch.delenv(name)


def test_without_any_variable_all_is_embedded_and_on_loopback() -> None:
    settings = Settings()
    assert settings.listen == "127.0.0.1:9088"
    assert settings.database_address == "sqlite:///data/memory.db"
    assert settings.milvus_address == "data/memory.milvus"
    assert settings.on_sqlite
    assert settings.on_lite
    assert settings.worker


def test_variables_are_the_names_in_capitals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_DATA_DIR", "/data")
    monkeypatch.setenv("MEMORY_WORKER", "off")
    monkeypatch.setenv("MEMORY_RANK_RELEVANCE_WEIGHT", "0")
    monkeypatch.setenv("MEMORY_MILVUS_URI", "http://milvus:19530")
    settings = Settings()
    assert settings.database_address == "sqlite:////data/memory.db"
    assert not settings.worker
    assert settings.rank_relevance_weight == 0
    assert not settings.on_lite


def test_milvus_can_be_switched_off() -> None:
    assert not Settings(milvus_uri=OFF).on_lite


def test_an_empty_variable_is_as_if_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDER", "")
    assert Settings().embedder == "use"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMORY_EMBEDDER", "best"),
        ("MEMORY_MIN_RELEVANCE", "nan"),
        ("MEMORY_BUDGET_FACT", "201"),
        ("MEMORY_RETRIEVE_TIMEOUT", "0"),
        ("MEMORY_WORKER", "perhaps"),
    ],
)
def test_a_bad_value_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=name.removeprefix("MEMORY_").lower()):
        Settings()


def test_what_is_shown_describes_every_knob_and_hides_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", "mysql+pymysql://ann:p@ss:word@db:3306/memory")
    monkeypatch.setenv("MEMORY_SERVICE_TOKEN", "hush")
    knobs = shown(Settings())
    assert all(knob["description"] for knob in knobs.values())
    assert knobs["MEMORY_DATABASE_URL"]["value"] == "mysql+pymysql://ann:***@db:3306/memory"
    assert knobs["MEMORY_SERVICE_TOKEN"]["value"] == "***"
    assert knobs["MEMORY_EMBEDDER_API_KEY"]["value"] == ""
    assert knobs["MEMORY_DATA_DIR"]["value"] == "data"
    assert not {"hush", "p@ss"} & set(str(knobs).split("'"))


def test_variables_that_are_no_knobs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDER", "use")
    assert unknown_variables(Settings, os.environ) == ["MEMORY_EMBEDER"]
    assert unknown_variables(Settings, ["MEMORY_CUT", "PATH"]) == []


def test_an_openai_embedder_must_be_described() -> None:
    with pytest.raises(ValidationError, match="MEMORY_EMBEDDER_MODEL, MEMORY_EMBEDDER_DIMS"):
        Settings(embedder="openai", embedder_base_url="http://127.0.0.1:1/v1")
    described = Settings(
        embedder="openai", embedder_base_url="http://x/v1", embedder_model="m", embedder_dims=8
    )
    assert described.embedder_dims == 8
