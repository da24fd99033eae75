"""Who may spend how many tokens: what is left, and what is held back for whom."""

from collections import Counter
from collections.abc import Iterable, Mapping


class Ledger:
    """Tokens left of a budget.

    An opening is what several components share and the first of them pays: the framing of a
    message, the fences of a block. openings below give the cost of each by its key.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self._open: set[str] = set()
        self._held: dict[int, int] = {}
        self._held_tokens = 0
        self._held_keys: Counter[str] = Counter()
        self._held_opening_cost = 0

    def available(self, owner: int, openings: Mapping[str, int]) -> int:
        """Give how much text of this owner fits beside its openings and what others hold."""
        left = self.room - self._held_tokens - self._held_opening_cost + self._held.get(owner, 0)
        if self._open.issuperset(openings):
            return left
        for key, price in openings.items():
            if key not in self._open and not self._held_keys[key]:
                left -= price
        return left

    def hold(self, owner: int, tokens: int, openings: Mapping[str, int]) -> bool:
        """Keep tokens and openings free for owner; False: they are not there."""
        if tokens > self.available(owner, openings):
            return False
        self._held[owner] = tokens
        self._held_tokens += tokens
        for key, price in openings.items():
            if key not in self._open and not self._held_keys[key]:
                self._held_opening_cost += price
            self._held_keys[key] += 1
        return True

    def release(self, owner: int, openings: Mapping[str, int]) -> None:
        """Keep nothing free for owner any longer."""
        if owner not in self._held:
            return
        self._held_tokens -= self._held.pop(owner)
        for key, price in openings.items():
            self._held_keys[key] -= 1
            if key not in self._open and not self._held_keys[key]:
                self._held_opening_cost -= price

    def spend(self, tokens: int, openings: Mapping[str, int]) -> list[str]:
        """Take tokens and what is not open yet; give the keys that this opened."""
        self.room -= tokens
        if self._open.issuperset(openings):
            return []
        opened = [key for key in openings if key not in self._open]
        for key in opened:
            self.room -= openings[key]
            if self._held_keys[key]:
                self._held_opening_cost -= openings[key]
            self._open.add(key)
        return opened

    def refund(self, tokens: int, openings: Mapping[str, int], opened: Iterable[str]) -> None:
        """Undo a spend."""
        self.room += tokens
        for key in opened:
            self.room += openings[key]
            if self._held_keys[key]:
                self._held_opening_cost += openings[key]
            self._open.remove(key)
