"""Numbers that prove themselves by a check digit: payment cards, bank accounts, Chinese ids."""

import re
from collections.abc import Iterable
from datetime import date
from itertools import accumulate

_GROUPS = re.compile(r"(?<![0-9+])(?=([0-9]{2,19}(?:[ ._/-][0-9]{1,17}){0,9})(?![0-9]))")
_CARD_BRANDS = re.compile(
    r"4(?:[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5]|2[2-7])[0-9]{14}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}"  # Diners
    r"|35[2-8][0-9]{13}"  # JCB
    r"|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}"  # Discover
    r"|62[0-9]{14,17}"  # UnionPay
)
_IBAN = re.compile(r"(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_IBAN_LENGTHS = range(15, 35)
_CHINESE_ID = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{16}[0-9Xx](?![0-9A-Za-z])")
_CHINESE_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def holds_card_number(text: str) -> bool:
    """Tell whether a number of a known card brand with a right check digit (Luhn) is in it.

    Its digits may be grouped by single spaces, dashes, dots, underscores or slashes.
    """
    return any(_is_card(row) for groups in _GROUPS.findall(text) for row in _rows(groups))


def holds_iban(text: str) -> bool:
    """Tell whether an international bank account number (ISO 13616, mod 97) is in it."""
    return any(_is_iban(run.replace(" ", "")) for run in _IBAN.findall(text))


def holds_chinese_id(text: str) -> bool:
    """Tell whether an 18-digit number of a resident's card (GB 11643) is in it."""
    return any(_is_chinese_id(number.upper()) for number in _CHINESE_ID.findall(text))


def _rows(groups: str) -> Iterable[str]:
    """Join the first group with those after it: a date or a code may stand beside a number."""
    return accumulate(re.split("[ ._/-]", groups))


def _is_card(number: str) -> bool:
    return _CARD_BRANDS.fullmatch(number) is not None and _luhn(number)


def _luhn(number: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return (sum(map(int, number[::-2])) + sum(doubled)) % 10 == 0


def _is_iban(account: str) -> bool:
    moved = account[4:] + account[:4]
    number = "".join(str(int(character, 36)) for character in moved)
    return len(account) in _IBAN_LENGTHS and int(number) % 97 == 1


def _is_chinese_id(number: str) -> bool:
    try:
        date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    weighed = zip(number, _CHINESE_ID_WEIGHTS, strict=False)
    return "10X98765432"[sum(int(digit) * weight for digit, weight in weighed) % 11] == number[-1]
