"""Transport of calls: address, key and arguments, secrets kept out of texts, and clients per event loop."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from assaymark.engine.calls import CallSpec, one_line
from assaymark.errors import ModelError
from assaymark.records import JSON

C = TypeVar("C")
T = TypeVar("T")

TIMEOUT_S: Final = 600.0
"""Seconds for one attempt unless ``args.timeout_s`` is set; the deadline of a run is usually shorter."""

_LONGEST_TIMEOUT_S: Final = 3600.0
_MOST_TOKENS: Final = 10**12
_SHORTEST_KEY: Final = 8
_VARIABLE = re.compile(r"(?!AIza)[A-Za-z_][A-Za-z0-9_]*")  # the exception is a key of Google's, not a name
_KEY = re.compile(rf"[\x21-\x7e]{{{_SHORTEST_KEY},}}")
USABLE: Final = f"at least {_SHORTEST_KEY} visible ASCII characters without spaces"
"""The form of a key or token."""
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(:(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*)?"
)
LONGEST_FORM: Final = 8
"""Length of the longest usual form of a key that `scrub` removes, as a multiple of the key's length."""

_DETAIL_CHARS: Final = 300
_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|xai|gsk)-[A-Za-z0-9_*.\-]{4,}|\bAIza[A-Za-z0-9_*.\-]{4,}|\bBearer\s+\S+")
_SECRETIVE = re.compile(r"[^/]*/{0,3}[^/]*@|.*[?#]", re.DOTALL)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A key or token whose representation hides it, so that tracebacks and logs do not show it."""

    _value: str
    _kind: str = "key"

    def __repr__(self) -> str:
        return f"[{self._kind}]"

    @property
    def usable(self) -> bool:
        """True if it has the form of a key or token (`USABLE`)."""
        return _KEY.fullmatch(self._value) is not None

    def reveal(self) -> str:
        """Return the key itself, to be passed to an SDK only."""
        return self._value

    def forms(self) -> re.Pattern[str]:
        """Return its pattern: each character plain, or escaped as in JSON or a URL, also more than once."""
        characters = ((re.escape(char), f"(?i:{ord(char):02x})") for char in self._value)
        pairs = (rf"(?:{char}|\\\\*(?:{char}|u00{code})|%(?:25)*{code})" for char, code in characters)
        return re.compile("".join(pairs))


_forms_of: Final = lru_cache(maxsize=64)(Secret.forms)  # there are few keys, and each reply is searched for one


def scrub(text: str, secrets: Sequence[Secret]) -> str:
    """Return ``text`` with ``[key]`` in place of every secret, in plain form and as escaped in JSON or a URL."""
    for secret in secrets:
        text = _forms_of(secret).sub(repr(secret), text)
    return text


def printable(text: str, secrets: Sequence[Secret], most: int = _DETAIL_CHARS) -> str:
    """Return a provider's text for a message: one line, shortened, without keys or anything that looks like one."""
    return one_line(_LIKE_A_KEY.sub("[key]", one_line(scrub(text, secrets), 8 * most)), most)


def may_hold_secret(address: str) -> bool:
    """True if an address has a user or a query part and so must not be shown."""
    return _SECRETIVE.match(address) is not None


@dataclass(frozen=True, slots=True)
class Provider:
    """Properties shared by all models of one provider: SDK, extra to install, variables of keys, and addresses."""

    name: str
    sdk: str
    extra: str
    key_envs: tuple[str, ...]
    home: str
    base_env: str | None = None


@dataclass(frozen=True, slots=True)
class Transport:
    """Destination of a call: address, key and timeout."""

    provider: Provider
    model: str
    base_url: str | None
    key_env: str
    key: Secret | None = field(repr=False)
    timeout_s: float = TIMEOUT_S
    options: tuple[tuple[str, JSON], ...] = ()  # further arguments of the client

    @property
    def address(self) -> str:
        """The full address."""
        return self.base_url or self.provider.home

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets that no text may contain."""
        return (self.key,) if self.key else ()

    def scrubbed(self, text: str) -> str:
        """Return ``text`` without the key."""
        return scrub(text, self.secrets)

    def shown(self, text: str) -> str:
        """Return a provider's text for a message; see `printable`."""
        return printable(text, self.secrets)


def transport(provider: Provider, call: CallSpec, environ: Mapping[str, str] | None = None) -> Transport:
    """Resolve a call's transport from its arguments, then the environment; a provider may find its key itself."""
    env = os.environ if environ is None else environ
    named, written = call.args.get("api_key_env"), call.args.get("base_url")
    base_url = written or (env.get(provider.base_env) if provider.base_env else None) or None
    if base_url is not None and (problem := address_problem(base_url)):
        raise ModelError(f"{'base_url' if written else provider.base_env}: {problem}", retryable=False, quota=True)
    tried = (str(named),) if named else (() if written else provider.key_envs)
    key_env = next((name for name in tried if env.get(name)), None)
    if key_env is None and (named or (base_url is None and tried)):
        problem = f"{call.model} needs a key: set the environment variable {' or '.join(tried)}"
        raise ModelError(problem, retryable=False, quota=True)
    key = Secret(env[key_env]) if key_env else None  # so that no local in a traceback shows it
    if key is not None and not key.usable:
        problem = f"the environment variable {key_env} contains no key: {USABLE}"
        raise ModelError(problem, retryable=False, quota=True)
    timeout_s = float(call.args.get("timeout_s", TIMEOUT_S))
    return Transport(provider, call.model.partition("/")[2], base_url, key_env or "no key", key, timeout_s)


def load_sdk(provider: Provider) -> ModuleType:
    """Import the provider's SDK. Raises `ModelError` if it is not installed."""
    try:
        return importlib.import_module(provider.sdk)
    except ImportError:
        pass
    advice = f"pip install 'assaymark[{provider.extra}]'"
    raise ModelError(
        f"the {provider.name} models need the package {provider.sdk}: {advice}", retryable=False, quota=True
    )


class PerLoop(Generic[C]):
    """The clients of a model: one for each event loop and each transport, closed when the loop ends."""

    def __init__(self, make: Callable[[Transport], C], close: Callable[[C], Awaitable[object]]) -> None:
        self._make, self._close = make, close
        self._held: WeakKeyDictionary[Any, dict[Transport, tuple[C, AsyncGenerator[None, None]]]] = WeakKeyDictionary()

    async def of(self, transport: Transport) -> C:
        """Return the client of a transport on this loop, made when first needed."""
        clients = self._held.setdefault(asyncio.get_running_loop(), {})
        if transport not in clients:
            client = self._make(transport)
            clients[transport] = (client, self._keep(client))
            await anext(clients[transport][1])
        return clients[transport][0]

    async def aclose(self) -> None:
        """Close the clients of this loop now."""
        for _, keeper in self._held.pop(asyncio.get_running_loop(), {}).values():
            await keeper.aclose()

    async def _keep(self, client: C) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self._close(client)


Rule = tuple[Callable[[Any], bool], str]
"""A predicate of allowed values, and a description of them."""


def is_number(value: object, low: float, high: float) -> bool:
    """True for a number from ``low`` to ``high`` that is not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def address_of(url: object) -> re.Match[str] | None:
    """Return scheme, host, port and path of an address without user, query and fragment; None for anything else."""
    match = _URL.fullmatch(url) if isinstance(url, str) and not may_hold_secret(url) else None
    return match if match is not None and 0 < int(match["port"] or 80) < 65536 else None


def address_problem(url: object, secret_in: str = "api_key_env") -> str | None:
    """Return the reason why this is not a valid address, or None; it does not show text that may hold a secret."""
    if address_of(url) is not None:
        return None
    allowed = "must be http://HOST:PORT/PATH or https://HOST/PATH, without user, query and fragment"
    if isinstance(url, str) and (may_hold_secret(url) or set("@?#") & set(url)):
        return f"{allowed} (not shown: it may hold a secret; name a variable in args.{secret_in} instead)"
    return f"{allowed} (got {str(url)[:80]!r})"


SECONDS: Final[Rule] = (
    lambda value: is_number(value, 0.001, _LONGEST_TIMEOUT_S),
    f"a number of seconds above 0 and at most {_LONGEST_TIMEOUT_S:g}",
)
VARIABLE: Final[Rule] = (
    lambda value: isinstance(value, str) and _VARIABLE.fullmatch(value) is not None,
    "the name of an environment variable: letters, digits and underscores",
)
API_RULES: Final[Mapping[str, Rule]] = {
    "base_url": (lambda value: address_problem(value) is None, ""), "api_key_env": VARIABLE, "timeout_s": SECONDS,
    "max_tokens": (
        lambda value: isinstance(value, int) and is_number(value, 1, _MOST_TOKENS), "a whole number above 0",
    ),
}  # fmt: skip
"""The arguments that models of every provider of an API take."""


def argument_problems(model: str, args: Mapping[str, JSON], rules: Mapping[str, Rule]) -> Iterator[str]:
    """Yield the problems with the arguments of a model, by the rules of its provider."""
    for name, value in args.items():
        if name not in rules:
            allowed = sorted(rules)
            matches = get_close_matches(name, allowed, n=1)
            hint = f"; did you mean {matches[0]!r}? Allowed:" if matches else "; allowed:"
            yield f"unknown argument {name!r} of {model}{hint} {', '.join(allowed)}"
        elif not rules[name][0](value):
            # the value in place of a variable's name may be the key itself
            shown = "" if rules[name] is VARIABLE else f" (got {value!r})"
            yield f"{name} {address_problem(value) if name == 'base_url' else f'must be {rules[name][1]}{shown}'}"


def refuse(call: CallSpec, problems: Sequence[str]) -> None:
    """Raise `ModelError`, before anything is sent, if there are problems with a call."""
    if problems:
        raise ModelError(f"{call.model}: {'; '.join(problems)}", retryable=False)


async def apart(work: Callable[[], T], leave: Callable[[], None] | None = None) -> T:
    """Return the result of ``work()``, run in a new thread so that the event loop is not blocked."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not done.done():
            set_it(value)

    def run() -> None:
        try:
            result: tuple[Callable[[Any], None], object] = (done.set_result, work())
        except BaseException as exc:  # raised in the waiting task, not in the thread
            result = (done.set_exception, exc)
        with suppress(RuntimeError):  # the loop is closed: nothing waits for the result
            loop.call_soon_threadsafe(settle, *result)

    threading.Thread(target=run, name="external agent", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        if leave is not None:
            leave()
        raise
