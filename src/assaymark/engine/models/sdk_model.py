"""What models asked over an official client share: one client an event loop, one request a call, no retries."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.models.wire import PerLoop, Provider, Transport, attempt, load_sdk, refuse, too_large, transport
from assaymark.records import JSON


class SdkModel(ABC):
    """A model of a provider, asked over the provider's own client. A new provider fills in four methods.

    Parameters
    ----------
    name : str
        The model, as the provider names it; who calls this has checked it.
    environ : mapping or None
        Where keys and addresses are looked up at each call; None for ``os.environ``.
    clients : PerLoop
        Makes the client for an event loop, and closes it.
    """

    provider: ClassVar[Provider]

    def __init__(self, name: str, environ: Mapping[str, str] | None, clients: PerLoop[Any]) -> None:
        self.name = f"{self.provider.name}/{name}"
        self._environ = environ
        self._clients = clients

    def check(self, args: Mapping[str, JSON] | None = None) -> None:
        """See that the SDK is installed and a key is set, before a run asks anything; nothing is sent.

        Raises
        ------
        ModelError
            Something is missing; the message says what to do.
        """
        load_sdk(self.provider)
        transport(self.provider, CallSpec(model=self.name, messages=(), template="", args=args or {}), self._environ)

    async def complete(self, call: CallSpec) -> Reply:
        """Ask once.

        Raises
        ------
        ModelError
            The call asks for what the API does not have, the SDK or the key is missing, or the attempt failed.
        """
        refuse(call, list(self._problems(call)))
        at = transport(self.provider, call, self._environ)
        request = self._request(call, at)
        client = await self._clients.of(at)
        started = time.perf_counter()  # not before: the first client of a process takes seconds to import
        body = await attempt(at, self._sent(client, request, call, at))
        seconds = time.perf_counter() - started
        return replace(too_large(body, call, at) or self._read(body, call, at), seconds=seconds)

    async def aclose(self) -> None:
        """Close the connections of this event loop; those of a loop that has ended are closed already."""
        await self._clients.aclose()

    @abstractmethod
    def _problems(self, call: CallSpec) -> Iterable[str]:
        """What the call asks for and cannot get, in words."""

    @abstractmethod
    def _request(self, call: CallSpec, at: Transport) -> dict[str, Any]:
        """What the client is handed."""

    @abstractmethod
    async def _sent(self, client: Any, request: dict[str, Any], call: CallSpec, at: Transport, /) -> bytes:
        """The body of the reply, or the start of one that is too long to be kept."""

    @abstractmethod
    def _read(self, body: bytes, call: CallSpec, at: Transport) -> Reply:
        """The reply in the body of a response; `ModelError` if it is none."""
