"""What a plain chat turn gives to the model."""

import pytest

from agent_service.adapters.tokens_toktok import default_counter
from agent_service.domain.assemble import Assembly, assemble
from agent_service.domain.chat_context import PRIORITY, Shares, chat_components
from agent_service.domain.components import Budget, Component, Truncate, Zone
from agent_service.domain.context import Reason, Status
from agent_service.domain.errors import BudgetExceeded, InvalidComponent
from agent_service.domain.model import MemoryType, Message, RecalledMemory, Role
from agent_service.domain.render import RenderMode, render_memory
from tests.builders.components import CHARACTERS


def turns(count: int, length: int = 20) -> list[Message]:
    return [
        Message(role, f"{index} {role} ".ljust(length, "."))
        for index in range(count)
        for role in (Role.USER, Role.ASSISTANT)
    ]


def memories(fact: str = "lives in Oslo") -> list[Component]:
    items = [
        RecalledMemory(
            memory_id="1",
            memory_type=MemoryType.CONSTRAINT,
            title="",
            content="Never book on Sundays",
        ),
        RecalledMemory(memory_id="2", memory_type=MemoryType.FACT, title="", content=fact),
    ]
    return render_memory(items, mode=RenderMode.TYPED_V2, locale="en", message="")


def chat(
    history: list[Message], *, fact: str = "lives in Oslo", window: int = 10_000, **more: object
) -> Assembly:
    values = {"instructions": "You are kind.", "memory": memories(fact), "user_text": "Hello?"}
    parts = chat_components(history=history, **{**values, **more})  # type: ignore[arg-type]
    return assemble(parts, Budget(window=window), CHARACTERS)


def test_p11_the_model_gets_the_instructions_the_memories_and_the_message() -> None:
    assembly = chat(turns(2))
    assert [message.role for message in assembly.messages] == [
        Role.SYSTEM,
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
        Role.ASSISTANT,
        Role.SYSTEM,
        Role.USER,
    ]
    assert assembly.messages[0].content == "You are kind."
    assert "- Never book on Sundays" in assembly.messages[-2].content
    assert "- lives in Oslo" in assembly.messages[-2].content
    assert assembly.messages[-1] == Message(Role.USER, "Hello?")


def test_a_new_turn_keeps_all_that_stood_before_memory_and_message() -> None:
    before = chat(turns(3), fact="likes tea")
    after = chat(turns(4), fact="works late", user_text="And now?")
    shared = len(before.messages) - 2
    assert before.messages[:shared] == after.messages[:shared]


def test_a69_a_tight_budget_drops_the_oldest_whole_exchanges_first() -> None:
    history = [
        Message(Role.USER, "first question ...."),
        Message(Role.ASSISTANT, "calls a tool"),
        Message(Role.TOOL, "tool result " * 5),
        Message(Role.ASSISTANT, "first answer"),
        *turns(2),
    ]
    sizes = set()
    for window in range(900, 280, -10):
        kept = list(chat(history, window=window).messages[1:-2])
        sizes.add(len(kept))
        assert kept == history[len(history) - len(kept) :]
        assert not kept or kept[0].role is Role.USER
    assert sizes == {0, 2, 4, 8}


def test_answers_whose_question_is_not_part_of_the_history_are_left_out() -> None:
    assert chat(turns(3)[1:]).messages[1:-2] == tuple(turns(3)[2:])
    only_answers = [Message(Role.ASSISTANT, "Welcome.")]
    assert chat(only_answers).messages[1:-2] == tuple(only_answers)


def test_history_is_cut_before_any_memory() -> None:
    assembly = chat(turns(50), window=700)
    fates = {told.id: told.status for told in assembly.report.components}
    assert fates["recent_history"] is Status.TRUNCATED
    assert fates["facts"] is fates["constraints"] is Status.FULL


def test_the_first_message_of_a_long_history_stays_for_many_turns() -> None:
    shares = Shares(truncation_step=400)
    firsts = {
        chat(turns(count), window=1500, shares=shares).messages[1].content
        for count in range(22, 62)
    }
    assert len(firsts) <= 40 * 2 * 26 // 400 + 2


def test_an_empty_answer_is_never_sent_again() -> None:
    history = [Message(Role.USER, "question"), Message(Role.ASSISTANT, " ")]
    assert [message.content for message in chat(history).messages[1:-2]] == ["question"]


def test_a_first_turn_has_no_history_and_a_resumed_one_no_message() -> None:
    assembly = chat([], memory=[], user_text=" ")
    assert [message.content for message in assembly.messages] == ["You are kind."]


def test_caps_of_a_kind_hold_but_not_for_what_is_required() -> None:
    shares = Shares(caps={"recent_history": 100, "constraints": 5, "user_turn": 1})
    assembly = chat(turns(10), shares=shares)
    told = {told.id: told for told in assembly.report.components}
    assert told["recent_history"].reason is Reason.COMPONENT_CAP
    assert told["recent_history"].tokens <= 100
    assert told["constraints"].status is Status.DROPPED
    assert told["user_turn"].status is Status.FULL


def test_more_components_stand_where_they_say() -> None:
    tools = Component(
        id="tools",
        kind="tools",
        title="tools",
        text="add, move",
        priority=PRIORITY["tools"],
        truncate=Truncate.HEAD,
        zone=Zone.STABLE,
        max_tokens=90,
    )
    assembly = chat([], more=[tools], shares=Shares(caps={"tools": 100}))
    assert assembly.messages[0].content == "You are kind.\n\n# TOOLS\nadd, move"
    assert assembly.stable_prefix == assembly.messages[0].content


def test_a_message_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(BudgetExceeded) as caught:
        chat(turns(1), user_text="x" * 500, window=300)
    assert caught.value.ids == ("instructions", "user_turn")


def test_blank_instructions_are_refused() -> None:
    with pytest.raises(InvalidComponent):
        chat([], instructions=" ")


def test_a72_special_token_text_is_an_ordinary_message() -> None:
    parts = chat_components(
        instructions="You are kind.", memory=[], history=[], user_text="<|endoftext|>"
    )
    assembly = assemble(parts, Budget(window=1000), default_counter())
    assert assembly.messages[-1].content == "<|endoftext|>"


def test_a39_a40_surrogates_and_nul_do_not_reach_the_model() -> None:
    history = [Message(Role.USER, "a\0b \ud83d")]
    assembly = chat(history, user_text="c\0d \udc00", fact="e\0f \ud83d")
    assert [message.content for message in assembly.messages[1::2]] == ["ab \ufffd", "cd \ufffd"]
    assert "- ef \ufffd" in assembly.messages[2].content
