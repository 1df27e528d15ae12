"""Reading the results of a batch: which of them are replies to its calls, and what is to be said of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from assaymark.engine.calls import Reply
from assaymark.engine.models.batches import Result
from assaymark.engine.rows import Attempt, End
from assaymark.errors import ModelError

_LAST_WORD = "the batch ended without a result for this call"


class Reading:
    """One reading of a file of results, from its start to its end.

    The first reply to a call counts, whatever else comes for it. A failure counts if no reply comes.

    Parameters
    ----------
    attempts : mapping of key to Attempt
        What the batch consists of.
    open_ : mapping of key to Attempt
        Those of them that have no reply yet.
    """

    def __init__(self, attempts: Mapping[str, Attempt], open_: Mapping[str, Attempt]) -> None:
        self._attempts, self._open = attempts, dict(open_)
        self._failed: dict[str, ModelError] = {}
        self._answered: set[str] = set()
        self._nobodys: list[str] = []
        self._n_nobodys = self._n_unread = self._n_again = 0

    def replies(self, results: Iterable[Result]) -> Iterator[End]:
        """The ends of the attempts that were answered, as the replies come."""
        for key, result in results:
            if key not in self._attempts:
                self._note_nobodys(key)
            elif key in self._answered or (isinstance(result, Reply) and key not in self._open):
                self._n_again += key in self._answered
                self._answered.add(key)  # of those answered before this reading, the first comes as expected
            elif isinstance(result, Reply):
                self._answered.add(key)
                yield End(self._open.pop(key), "replied", reply=result)
            else:
                self._failed.setdefault(key, result)

    def failures(self) -> list[tuple[Attempt, str, bool]]:
        """The attempts without a reply, why, and whether another may bring one. To be asked after all the replies."""
        found: list[tuple[Attempt, str, bool]] = []
        for key, attempt in self._open.items():
            error = self._failed.get(key)
            found.append((attempt, _LAST_WORD, True) if error is None else (attempt, str(error), error.retryable))
        return found

    @property
    def ours(self) -> bool:
        """Whether any result was for one of the calls."""
        return bool(self._answered or self._failed)

    @property
    def strange(self) -> bool:
        """Whether anything came that nobody asked for."""
        return bool(self._n_nobodys or self._n_unread or self._n_again)

    def note(self) -> str:
        """What came, in words."""
        words = [f"{len(self._attempts) - len(self._open)} replies", f"{len(self._open)} without one"]
        if self._n_again:
            words.append(f"{self._n_again} results came again and were ignored")
        if self._n_nobodys:
            shown = ", ".join(self._nobodys)
            words.append(f"{self._n_nobodys} results for unknown calls were ignored (such as {shown})")
        if self._n_unread:
            words.append(f"{self._n_unread} lines could not be read")
        return "; ".join(words)

    def _note_nobodys(self, key: str) -> None:
        if not key:
            self._n_unread += 1
            return
        self._n_nobodys += 1
        if len(self._nobodys) < 3:
            self._nobodys.append(key[:64])
