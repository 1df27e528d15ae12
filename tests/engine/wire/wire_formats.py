"""A provider over loopback that speaks all formats: what is said is a text, put into a whole reply of that format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from openai_wire import COMPLETION, RESPONSE
from provider_cases import GENERATED, MESSAGE, SAID
from provider_server import ProviderServer, Received, Receiving, Step, answer

FORMATS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/responses": RESPONSE,
    "/chat/completions": COMPLETION,
    "/messages": MESSAGE,
    "generateContent": GENERATED,
}
"""A reply by how the path of its request ends."""


def format_of(request: Received) -> str:
    """Which of `FORMATS` a request is in."""
    return next(end for end in FORMATS if request.path.partition("?")[0].endswith(end))


def with_said(found: Any, text: str) -> Any:
    """A canned reply with our text in place of its own."""
    if isinstance(found, dict):
        return {name: with_said(value, text) for name, value in found.items()}
    if isinstance(found, list):
        return [with_said(value, text) for value in found]
    return text if found == SAID else found


def speaking(say: Callable[[Received], str]) -> Step:
    """Answer each request with what ``say`` makes of it."""

    def step(handler: Receiving, server: ProviderServer) -> None:
        answer(with_said(FORMATS[format_of(handler.received)], say(handler.received)))(handler, server)

    return step
