"""Short acknowledgements: messages that approve or decline and ask for nothing."""

import unicodedata

ENGLISH = """
ok okay k yes yeah yep yup sure fine no nope nah thanks thx ty cool great done
"""
CHINESE = """
好 好的 好吧 嗯 嗯嗯 收到 行 可以 是 是的 对 对的 不 不用 不要 没问题 知道了 明白 明白了 谢谢 哦 噢
"""
PHRASES = frozenset(
    {"got it", "no thanks", "thank you", "sounds good", "go ahead", "all right", "of course"}
)
ACKNOWLEDGEMENTS = PHRASES.union(ENGLISH.split(), CHINESE.split())


def is_acknowledgement(message: str) -> bool:
    """Tell whether the message only says yes, no, or that it was heard; punctuation is nothing."""
    letters = "".join(
        " " if unicodedata.category(sign)[0] in "PSZC" else sign for sign in message.casefold()
    )
    return " ".join(letters.split()) in ACKNOWLEDGEMENTS


def recall_text(message: str) -> str:
    """Give what to search memory with; nothing for an acknowledgement.

    An approval must still know the constraints, which an empty search brings.
    """
    return "" if is_acknowledgement(message) else message
