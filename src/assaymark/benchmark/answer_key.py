"""A model that is handed the answers: the ceiling of every score, and a test that a true answer earns it."""

from __future__ import annotations

from collections.abc import Mapping

from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import ModelError

NAME = "reference/portbench-answer-key"
"""The name under which it is registered."""


class AnswerKey:
    """A `Model` that answers what it was told to answer, call by call.

    Of an episode the true reply to the pending call is `EpisodeState.true_reply`: add it before the call is asked.

    >>> key = AnswerKey()
    >>> key.add("0" * 64, "ANSWER: 1.0")
    >>> len(key)
    1
    """

    def __init__(self, replies: Mapping[str, str] | None = None) -> None:
        self._replies = dict(replies or {})

    def add(self, call_key: str, text: str) -> None:
        """The reply to the call with this key."""
        self._replies[call_key] = text

    def __len__(self) -> int:
        return len(self._replies)

    async def complete(self, call: CallSpec) -> Reply:
        """The reply that was added for a call.

        Raises
        ------
        ModelError
            None was.
        """
        text = self._replies.get(call.key)
        if text is None:
            raise ModelError(f"the answer key has no answer to call {call.key[:12]}...", retryable=False)
        return Reply(text=text, model=NAME, fingerprint=f"{NAME}@1")
