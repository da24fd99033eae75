"""Who gets into the prompt: greedy by priority, going on after what does not fit."""

from collections.abc import Iterable, Sequence

from agent_service.domain.components import Truncate, Trust
from agent_service.domain.context import Reason, Status
from agent_service.domain.errors import BudgetExceeded
from agent_service.domain.fit import Fate, Offer, dropped, fit, whole
from agent_service.domain.ledger import Ledger
from agent_service.domain.tokens import TokenCounter

_TRUSTED = Trust.TRUSTED
_Unit = Sequence[Offer]
"""Offers that are sent all or none: one, or those of an atomic group."""


class Admission:
    """The fate of each offer, by the index of its section."""

    def __init__(self, usable: int, ledger: Ledger, counter: TokenCounter) -> None:
        self.fates: dict[int, Fate] = {}
        self._usable = usable
        self._ledger = ledger
        self._counter = counter
        self._admitted: list[_Unit] = []
        """Optional ones, the last admitted last."""
        self._shrunk: set[int] = set()
        self._said: set[tuple[str, ...]] = set()

    def admit(self, offers: Iterable[Offer], halved: frozenset[str]) -> None:
        """Decide about all offers. Groups in halved have lost a blank member.

        Required ones first, or BudgetExceeded; then what min_tokens asks for is held back, by
        priority, while it fits; then each gets what is left, by priority, ties by input.
        """
        ranked = sorted(offers, key=_rank)
        required = [offer for offer in ranked if offer.section.component.required]
        optional = [offer for offer in ranked if not offer.section.component.required]
        self._require(required)
        self._hold(optional)
        for unit in _units(optional):
            for offer in unit:
                if offer.section.component.min_tokens:
                    self._ledger.release(offer.section.position, offer.openings)
            group = unit[0].section.component.atomic_group
            if group:
                self._place_group(unit, lost=group in halved)
            else:
                self._place(unit[0])

    def shrink(self, excess: int) -> bool:
        """Make the last optional one smaller by excess tokens, or drop it; False: none is left."""
        if not self._admitted:
            return False
        unit = self._admitted[-1]
        offer = unit[-1]
        index = offer.section.position
        room = self.fates[index].cost - excess
        fate = fit(offer, room=room, counter=self._counter)
        if fate.status is Status.DROPPED or index in self._shrunk:
            grouped = offer.section.component.atomic_group
            self._drop(unit, Reason.GROUP if grouped else Reason.BUDGET)
            self._admitted.pop()
        else:
            self.fates[index] = fate
            self._shrunk.add(index)
        return True

    def _require(self, required: Sequence[Offer]) -> None:
        for offer in required:
            cap = offer.section.component.max_tokens
            if cap is not None and offer.cost > cap:
                raise BudgetExceeded(
                    needed=offer.cost, usable=cap, ids=(offer.section.component.id,)
                )
            self._ledger.spend(offer.cost + offer.join, offer.openings)
            self.fates[offer.section.position] = whole(offer)
        if required and self._ledger.room < 0:
            raise BudgetExceeded(
                needed=self._usable - self._ledger.room,
                usable=self._usable,
                ids=tuple(offer.section.component.id for offer in required),
            )

    def _hold(self, optional: Iterable[Offer]) -> None:
        """Stop at the first that asks for too much: it must not lose what it has to lower ones."""
        for offer in optional:
            component = offer.section.component
            if not component.min_tokens:
                continue
            tokens = min(component.min_tokens, offer.cost)
            uncut = component.truncate is Truncate.NONE and not component.fallback_text
            if uncut and tokens < offer.cost:
                continue
            if not self._ledger.hold(offer.section.position, tokens + offer.join, offer.openings):
                return

    def _place(self, offer: Offer) -> None:
        fate = self._fit(offer)
        self.fates[offer.section.position] = fate
        if fate.texts:
            self._ledger.spend(fate.cost + offer.join, offer.openings)
            self._admitted.append((offer,))

    def _place_group(self, unit: _Unit, *, lost: bool) -> None:
        """Place all or none; what was spent on some is given back."""
        spent = []
        for offer in () if lost else unit:
            fate = self._fit(offer)
            self.fates[offer.section.position] = fate
            if not fate.texts:
                lost = True
                break
            tokens = fate.cost + offer.join
            spent.append((tokens, offer.openings, self._ledger.spend(tokens, offer.openings)))
        if not lost:
            self._admitted.append(unit)
            return
        for tokens, openings, opened in reversed(spent):
            self._ledger.refund(tokens, openings, opened)
        self._drop(unit, Reason.GROUP)

    def _fit(self, offer: Offer) -> Fate:
        room = self._ledger.available(offer.section.position, offer.openings) - offer.join
        component = offer.section.component
        if component.trust is _TRUSTED:
            if offer.cost <= room and component.max_tokens is None:
                return whole(offer)
            return fit(offer, room=room, counter=self._counter)
        says = _says(offer)
        if says in self._said:
            return dropped(Reason.DUPLICATE)
        fate = fit(offer, room=room, counter=self._counter)
        if says and fate.status is Status.FULL:
            self._said.add(says)
        return fate

    def _drop(self, unit: _Unit, reason: Reason) -> None:
        for offer in unit:
            self.fates[offer.section.position] = dropped(reason)


def _rank(offer: Offer) -> tuple[int, int]:
    return (-offer.section.component.priority, offer.section.position)


def _units(ranked: Sequence[Offer]) -> Iterable[_Unit]:
    """Give groups at the rank of their best, in them first what cannot be cut."""
    units: dict[str | int, list[Offer]] = {}
    for offer in ranked:
        group = offer.section.component.atomic_group
        if group in units:
            units[group].append(offer)
        else:
            units[group or offer.section.position] = [offer]
    for unit in units.values():
        if len(unit) > 1:
            unit.sort(key=_can_be_cut)
    return units.values()


def _can_be_cut(offer: Offer) -> bool:
    return offer.section.component.truncate is not Truncate.NONE


def _says(offer: Offer) -> tuple[str, ...]:
    """Give what tells a text that others wrote from others of its kind; empty: never the same."""
    component = offer.section.component
    if component.atomic_group:
        return ()
    section = offer.section
    return (component.kind, component.role, section.body, *(item.text for item in section.items))
