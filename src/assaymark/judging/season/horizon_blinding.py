"""The names in a horizon, taken out of all of it at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from assaymark.judging.blinding import Anonymised, Blinding
from assaymark.judging.season.horizon_types import (
    AuditLine,
    Horizon,
    HorizonBook,
    HorizonRejection,
    HorizonStep,
)
from assaymark.records import Rationale


@dataclass(frozen=True, slots=True)
class HorizonBlinding:
    """The blinding of a whole horizon.

    ``kept`` holds the names in the universe as they are written, ``identifiers`` the ids of records and episodes.
    """

    blinding: Blinding
    kept: frozenset[str]
    identifiers: tuple[str, ...]

    def horizon(self, found: Horizon) -> Horizon:
        """The horizon without names, and with the audit of that."""
        texts = list(dict.fromkeys(self._texts(found)))
        plain = [self._without_identifiers(text) for text in texts]
        blinded = self.blinding.apply_all([text for text, _ in plain])
        said = {text: one.text for text, one in zip(texts, blinded, strict=True)}
        uses = Counter(self._texts(found))
        audit = _audit([(one, uses[text]) for text, one in zip(texts, blinded, strict=True)])
        ids = sum(count * uses[text] for text, (_, count) in zip(texts, plain, strict=True))
        if ids:
            audit = (*audit, AuditLine("[id]", "replaced", ids, "identifiers of records and episodes"))
        steps = tuple(self._blinded(step, said) for step in found.steps)
        before = None if found.before is None else _book(found.before, said)
        return Horizon(steps, said.get(found.mandate, found.mandate), before, audit)

    def _texts(self, found: Horizon) -> Iterable[str]:
        """Everything that is not a number or a name in the universe, in the order of the record."""
        yield found.mandate
        yield from self._symbols(found.before)
        for step in found.steps:
            yield step.day
            yield from self._foreign(action.instrument for action in step.actions)
            yield step.stated
            yield from (text.text for text in step.texts)
            yield from self._foreign(fill.symbol for fill in step.fills)
            for order in step.rejections:
                yield from (*self._foreign([order.symbol]), order.reason)
            yield from self._symbols(step.book)
            yield from step.market.words

    def _symbols(self, book: HorizonBook | None) -> Iterable[str]:
        return self._foreign(symbol for symbol, _ in book.positions) if book else ()

    def _foreign(self, symbols: Iterable[str]) -> Iterable[str]:
        """Symbols that are not in the universe: an order may name anything."""
        return (symbol for symbol in symbols if symbol not in self.kept)

    def _without_identifiers(self, text: str) -> tuple[str, int]:
        """The text with ids as ``[id]``, and how many there were."""
        count = 0
        for identifier in self.identifiers:
            if identifier in text:
                count += text.count(identifier)
                text = text.replace(identifier, "[id]")
        return text, count

    @staticmethod
    def _blinded(step: HorizonStep, said: Mapping[str, str]) -> HorizonStep:
        """One step with its texts replaced."""

        def of(text: str) -> str:
            return said.get(text, text)

        return replace(
            step,
            day=of(step.day),
            actions=tuple(replace(action, instrument=of(action.instrument)) for action in step.actions),
            stated=of(step.stated),
            texts=tuple(Rationale(text=of(text.text), kind=text.kind) for text in step.texts),
            fills=tuple(replace(fill, symbol=of(fill.symbol)) for fill in step.fills),
            rejections=tuple(HorizonRejection(of(order.symbol), of(order.reason)) for order in step.rejections),
            book=None if step.book is None else _book(step.book, said),
            market=step.market.worded(said),
        )


def _book(book: HorizonBook, said: Mapping[str, str]) -> HorizonBook:
    return HorizonBook(book.cash, tuple((said.get(symbol, symbol), units) for symbol, units in book.positions))


def _audit(found: Sequence[tuple[Anonymised, int]]) -> tuple[AuditLine, ...]:
    """What was replaced and kept in all texts, each as often as it is shown."""
    replaced: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for one, uses in found:
        replaced.update({name: count * uses for name, count in one.replaced.items()})
        kept.update({name: count * uses for name, count in one.kept.items()})
    lines = [AuditLine(name, "replaced", n, "names an agent, a model or its maker") for name, n in replaced.items()]
    lines += [
        AuditLine(name, "kept", n, "a listed name stands in it, and it is in the universe") for name, n in kept.items()
    ]
    return tuple(sorted(lines, key=lambda line: (line.state, line.name)))
