"""What learns from turns, as the settings say."""

import subprocess
import sys

import pytest

from memory_service.adapters.extractor_rules import RulesExtractor
from memory_service.adapters.judge_rules import RulesJudge
from memory_service.app.learning import make_extractor, make_judge, make_model
from memory_service.settings import Settings
from tests.builders.turns import turn
from tests.services.openai_server import answers, openai_server

_NO_MODEL = """
import sys
from memory_service.app.learning import make_extractor, make_judge, make_model
from memory_service.settings import Settings
make_judge(make_model(Settings()))
make_extractor(make_model(Settings()))
sys.exit("openai" in sys.modules)
"""


def test_without_a_model_the_rules_learn() -> None:
    assert make_model(Settings()) is None
    assert isinstance(make_extractor(None), RulesExtractor)
    assert isinstance(make_judge(None), RulesJudge)


def test_without_a_model_nobody_waits_for_its_client() -> None:
    assert subprocess.run([sys.executable, "-c", _NO_MODEL], check=False).returncode == 0


@pytest.mark.parametrize(
    "settings", [Settings(llm_model="m"), Settings(llm_base_url="http://127.0.0.1:9/v1")]
)
async def test_a_model_or_an_address_is_enough_for_a_model_to_learn(settings: Settings) -> None:
    model = make_model(settings)
    assert model is not None
    assert make_extractor(model).model == make_judge(model).model == model.name
    await model.close()


async def test_the_settings_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(answers('{"facts":[]}')) as server:
        monkeypatch.setenv("MEMORY_LLM_BASE_URL", server.base_url)
        monkeypatch.setenv("MEMORY_LLM_API_KEY", "sk-ours")
        monkeypatch.setenv("MEMORY_LLM_MODEL", "small-one")
        monkeypatch.setenv("MEMORY_LLM_MAX_OUTPUT_TOKENS", "77")
        settings = Settings()
        assert "sk-ours" not in repr(settings)
        model = make_model(settings)
        assert model is not None
        await make_extractor(model).extract(turn())
        await model.close()
    [call] = server.calls
    assert (call.key, call.body["model"], call.body["max_tokens"]) == (
        "Bearer sk-ours",
        "small-one",
        77,
    )
