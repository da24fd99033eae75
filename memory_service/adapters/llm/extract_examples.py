"""The examples in the prompt of extraction. Small models copy them: see facts.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_service.domain.ingest import Intent
from memory_service.domain.model import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A turn, and a good answer to it."""

    said: Sequence[Mapping[str, object]]
    intent: Intent
    facts: Sequence[Mapping[str, object]] = ()

    @property
    def answer(self) -> Mapping[str, object]:
        """Give the answer as a model writes it."""
        return {"message_intent": self.intent, "facts": self.facts}


def _fact(memory_type: MemoryType, title: str, content: str, **more: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "confidence": 0.9,
        "importance": 0.6,
        "sensitivity_level": 0,
        "is_explicit": False,
        "expire_time": None,
    }
    return {"memory_type": memory_type, "title": title, "content": content, **usual, **more}


EXAMPLES = (
    Example(
        said=[
            {
                "role": "user",
                "time": "2031-05-06T09:00:00+02:00, Tuesday",
                "text": "Remember: in my reports dates are day.month. My kayak club now meets on "
                "Thursdays. Which river is the longest?",
            },
            {
                "role": "assistant",
                "time": "2031-05-06T09:00:05+02:00, Tuesday",
                "text": "The Nile. I suppose that you love rivers!",
            },
        ],
        intent=Intent.STANDING_INSTRUCTION,
        facts=[
            _fact(
                MemoryType.CONSTRAINT,
                "Dates in reports",
                "Dates in the user's reports must be written as day.month.",
                importance=0.95,
                is_explicit=True,
            ),
            _fact(MemoryType.FACT, "Kayak club", "The user's kayak club meets on Thursdays."),
        ],
    ),
    Example(
        said=[
            {
                "role": "user",
                "time": "2031-05-06T09:00:00+08:00, Tuesday",
                "text": "后天我要去补办护照。",
            }
        ],
        intent=Intent.PERSONAL_FACT,
        facts=[
            _fact(
                MemoryType.TODO_HINT,
                "补办护照",
                "用户要在2031-05-08补办护照。",
                expire_time="2031-05-09T00:00:00+08:00",
            )
        ],
    ),
    Example(
        said=[
            {
                "role": "user",
                "time": "2031-05-06T09:00:00+00:00, Tuesday",
                "text": "Why is the sea salty?",
            }
        ],
        intent=Intent.KNOWLEDGE_QA,
    ),
)
_FACTS = [fact for example in EXAMPLES for fact in example.facts]
EXAMPLE_CONTENTS = frozenset(str(fact["content"]) for fact in _FACTS)
EXAMPLE_EXPIRIES = frozenset(
    datetime.fromisoformat(str(time)) for fact in _FACTS if (time := fact["expire_time"])
)
