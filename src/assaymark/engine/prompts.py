"""The texts of calls on their way into the ledger: each is stored once, however many calls show it."""

from __future__ import annotations

from typing import Final

from assaymark.engine.calls import CallSpec, Text
from assaymark.engine.objects import Packed, pack, text_bytes
from assaymark.errors import LedgerError

_KNOWN_TEXTS: Final = 200_000  # digests remembered while planning, about 25 MB


class Unseen:
    """The texts of planned calls that the ledger is not known to have, by digest.

    >>> from assaymark.engine import Message
    >>> hello = (Message("user", (Text.of("hello"),)),)
    >>> unseen = Unseen()
    >>> unseen.add(CallSpec(model="reference/auditor", messages=hello, template=""))
    >>> [text.text for text in unseen.take().values()], unseen.take()
    (['hello'], {})
    """

    def __init__(self) -> None:
        self._found: dict[str, Text] = {}
        self._known: set[str] = set()
        self._last: tuple[object, object] = (None, None)

    def add(self, call: CallSpec) -> None:
        """Take those of a call."""
        if call.messages is self._last[0] and call.schema is self._last[1]:
            return  # neighbours mostly share their whole prompt
        self._last = (call.messages, call.schema)
        self._found.update({text.sha256: text for text in call.texts if text.sha256 not in self._known})

    def take(self) -> dict[str, Text]:
        """Those found since the last time, which count as known from now on."""
        found, self._found = self._found, {}
        if len(self._known) > _KNOWN_TEXTS:
            self._known.clear()
        self._known.update(found)
        return found


def pack_text(text: Text) -> Packed:
    """A text as the object that it is stored as.

    Raises
    ------
    LedgerError
        It is not the text that its digest names.
    """
    packed = pack(text_bytes(text.text))
    if packed.sha256 != text.sha256:
        raise LedgerError(
            f"a prompt part is named {text.sha256} but its text has the sha256 {packed.sha256}; use Text.of"
        )
    return packed
