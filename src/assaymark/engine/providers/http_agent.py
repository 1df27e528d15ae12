"""External agents: behind an HTTP address, which gets a context by POST and answers with JSON, or a Python callable."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import re
import socket
import ssl
import sysconfig
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import KW_ONLY, field
from functools import reduce
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from importlib.metadata import EntryPoint, entry_points
from operator import itemgetter
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final, Literal

from assaymark import __version__
from assaymark.engine.calls import CallSpec, Reply, one_line
from assaymark.engine.loop import LARGE_BYTES, MOST_KEPT_BYTES, current_slot
from assaymark.engine.providers.base import count_of, part_of, parts_of, word_of
from assaymark.engine.providers.transports import (
    LONGEST_FORM,
    SECONDS,
    USABLE,
    VARIABLE,
    Rule,
    Secret,
    address_of,
    address_problem,
    apart,
    argument_problems,
    refuse,
    scrub,
)
from assaymark.errors import InputError, ModelError
from assaymark.prompting import JUDGED_KINDS, Rejected, strict_json
from assaymark.records import JSON, Context, Decision, canonical_json, parse, record, to_json

# The request to an external agent, its answer, and the failures that are recorded in place of an answer.


FORMAT: Final = "assaymark context 1"
"""The ``format`` field of a request; it changes with the form of the request."""

PATIENCE_S: Final = 100.0
"""Seconds that an agent has for one decision unless ``args.timeout_s`` is set."""

MOST_BYTES: Final = 2_000_000
"""Maximum length of an agent's answer; a decision is a few thousand bytes."""

FailureKind = Literal[
    "timeout", "refused", "unreachable", "tls", "cut", "not HTTP", "status", "redirect", "encoding", "too large",
    "not UTF-8", "exception", "wrong type",
]  # fmt: skip

_CAME: Final[frozenset[FailureKind]] = frozenset({"wrong type", "too large", "encoding", "not UTF-8"})
"""Failures in which an answer arrived and could not be parsed."""

_DETAIL_CHARS: Final = 300
_START_CHARS: Final = 500
_ADDRESS_RULES: Final[Mapping[str, Rule]] = {"timeout_s": SECONDS, "token_env": VARIABLE}
_RULES: Final = {"http": _ADDRESS_RULES, "https": _ADDRESS_RULES, "python": {"timeout_s": SECONDS}}

OUTSIDE: Final = ("http/", "https/", "python/")
"""Prefixes of the names of external agents: an address, or a Python callable."""


@record
class MarketContext(Context):
    """A context of the benchmark's pipeline: what its prompt says in words and tables, as numbers.

    ``instruments`` give the order of everything that comes as rows and columns. ``returns`` are daily simple returns, a
    row a day, oldest first, the last one of the decision day; ``correlations`` are those of these returns.
    ``horizon_days`` is how many trading days ahead views look. ``views`` and ``signals`` are the agent's own answers to
    the stages before, as they were read; ``weights`` the shares of net asset value that are held before the trade.
    """

    _: KW_ONLY
    stage: Literal["S1", "S2", "S3"]
    returns: tuple[tuple[float, ...], ...]
    correlations: tuple[tuple[float, ...], ...]
    horizon_days: int | None = None
    views: Mapping[str, float] = field(default_factory=dict)
    signals: Mapping[str, Literal["buy", "hold", "sell"]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


@record
class QuestionContext(Context):
    """A context of a question of the benchmark.

    ``given`` are the numbers that the prompt states, by name and with the digits that it prints; of a question whose
    text is somebody else's there are none. What is left out of a restricted prompt is left out of them too.
    """

    _: KW_ONLY
    template: str
    given: Mapping[str, JSON] = field(default_factory=dict)


@record
class AgentRequest:
    """What an external agent is sent: all that it may use, and the JSON Schema of the answer.

    As JSON it is the user message of the call, and the body of the POST.
    """

    context: Context | MarketContext | QuestionContext
    reply_schema: Mapping[str, JSON]
    format: Literal["assaymark context 1"] = FORMAT


def is_outside(model: str) -> bool:
    """True if a model name is an external agent, which gets contexts and no prompt."""
    return model.startswith(OUTSIDE)


@record
class AgentFailure:
    """The reason for a missing answer. ``start`` is the beginning of the data received, for debugging."""

    failure: FailureKind
    detail: str
    start: str = ""

    @property
    def text(self) -> str:
        """The failure as the text of a reply; ``parse(AgentFailure, text)`` restores it."""
        return canonical_json(self)

    @staticmethod
    def words(text: str) -> str:
        """Format the text of a failed reply for readers: kind, detail and start; any other text is unchanged."""
        kind, detail, start = (str(_object(text).get(name, "")) for name in ("failure", "detail", "start"))
        reason = detail if detail.startswith(kind) else f"{kind}: {detail}"
        return (reason + f" (it begins: {start})" * bool(start)) if kind else text

    def reply(self, model: str, raw: str | None = None) -> Reply:
        """Return the failure as the recorded reply of a model, so that the call is never sent again."""
        return Reply(self.text, model, "failed", raw)


def failure(kind: FailureKind, detail: str, start: str = "") -> AgentFailure:
    """Make a failure with printable, shortened texts from any input of the agent."""
    return AgentFailure(failure=kind, detail=one_line(detail, _DETAIL_CHARS), start=one_line(start, _START_CHARS))


def no_reply(reply: Reply) -> bool:
    """True if a call got no answer at all: an exception, no connection, a refusal, or a timeout."""
    return reply.finish == "refusal" or (reply.finish == "failed" and _object(reply.text).get("failure") not in _CAME)


def request_text(call: CallSpec) -> str:
    """Return the text that is sent to an external agent: the user message of its call. Raises `ModelError`."""
    text = "".join(message.text for message in call.messages if message.role == "user")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise ModelError(
            f"{call.model} is an external agent: it is sent contexts ({FORMAT!r}), and cannot judge or read a prompt",
            retryable=False,
        )
    return text


def read_request(call: CallSpec) -> AgentRequest:
    """Parse the request of a call. Raises `ModelError`."""
    try:
        return parse(AgentRequest, request_text(call), source=f"the request to {call.model}")
    except InputError as exc:
        raise ModelError(str(exc), retryable=False) from None


def to_reply(text: str, model: str) -> Reply:
    """Return an agent's answer as a reply, with the model, fingerprint and token usage that it reports, if any."""
    facts = _object(text)
    usage = part_of(facts, "usage")
    return Reply(
        text, model=word_of(facts.get("model")) or model, fingerprint=word_of(facts.get("fingerprint")),
        input_tokens=count_of(usage.get("input_tokens")), output_tokens=count_of(usage.get("output_tokens")),
    )  # fmt: skip


def patience(args: Mapping[str, JSON]) -> float:
    """Seconds that an agent has for one decision. The deadline of the run must be longer, or it takes effect first."""
    return float(args.get("timeout_s", PATIENCE_S))


def external_argument_problems(model: str, args: Mapping[str, JSON]) -> Iterator[str]:
    """Yield the problems with the arguments of an external agent; none for models of other providers."""
    rules = _RULES.get(model.partition("/")[0])
    return iter(()) if rules is None else argument_problems(model, args, rules)


def _object(text: str) -> dict[str, Any]:
    try:
        content = strict_json(text)
    except Rejected:
        return {}
    return content if isinstance(content, dict) else {}


_TRIES: Final = 3
_BETWEEN_TRIES_S: Final = 0.2
_KNOCK_S: Final = 3.0
_PART_BYTES: Final = 65_536
_LOOKED_AT: Final = 4096
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity",
    "Connection": "close", "User-Agent": f"assaymark/{__version__}",
}  # fmt: skip

Sleep = Callable[[float], Awaitable[None]]


class HttpAgent:
    """An external agent behind an address, ``http://host:port/path`` or ``https://...``."""

    def __init__(
        self, url: str, *, timeout_s: float = PATIENCE_S, max_bytes: int = MOST_BYTES,
        environ: Mapping[str, str] | None = None, sleep: Sleep = asyncio.sleep,
    ) -> None:  # fmt: skip
        parts = address_of(url)
        if parts is None:
            raise InputError("address of an agent", [address_problem(url, "token_env") or ""])
        secure = parts["scheme"] == "https"
        port = int(parts["port"] or (443 if secure else 80))
        self.url, self.site = url, (secure, parts["host"].strip("[]"), port, parts["path"] or "/")
        """True for TLS; the host (an IPv6 address without brackets), the port and the path."""
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._environ = os.environ if environ is None else environ
        self._sleep = sleep

    def check(self) -> None:
        """Connect once and close, before a run, so that no study fails because an agent was never started."""
        try:
            socket.create_connection(self.site[1:3], timeout=_KNOCK_S).close()
        except (OSError, UnicodeError) as exc:
            reason = failure("unreachable", _reason(exc)).detail
            advice = "start the agent and run the same command again"
            raise ModelError(f"nothing answers at {self.url} ({reason}); {advice}", retryable=True) from None

    async def complete(self, call: CallSpec) -> Reply:
        """Send the request of a call and return the answer. A missing answer is a reply with ``finish`` ``failed``."""
        refuse(call, list(external_argument_problems(call.model, call.args)))
        # A lone surrogate, which UTF-8 cannot encode, becomes its JSON escape.
        body = request_text(call).encode("utf-8", "backslashreplace")
        token = self._token(call)
        timeout_s = float(call.args.get("timeout_s", self._timeout_s))
        # For the thread that reads a large answer: waits for the slot of this attempt
        place, loop = current_slot(), asyncio.get_running_loop()

        def take() -> None:
            if place is not None and not place.acquired:
                try:
                    asyncio.run_coroutine_threadsafe(place.acquire(), loop).result(timeout_s)
                except (CancelledError, RuntimeError):  # the loop has ended: the answer is not needed
                    raise TimeoutError from None

        post = _Post(self.site, body, token, timeout_s, self._max_bytes, take)
        try:
            async with asyncio.timeout(timeout_s):
                answer = await apart(post, post.abort)
                for _ in range(_TRIES - 1):  # only a refused connection is retried, since nothing was sent
                    if not (isinstance(answer, AgentFailure) and answer.failure == "refused"):
                        break
                    await self._sleep(_BETWEEN_TRIES_S)
                    answer = await apart(post, post.abort)
        except TimeoutError:
            answer = post.failed("timeout", f"no answer within {timeout_s:g} s")
        if isinstance(answer, AgentFailure):
            return answer.reply(call.model, raw=post.received_text() if answer.failure == "too large" else None)
        return to_reply(answer if token is None else scrub(answer, [token]), call.model)

    def _token(self, call: CallSpec) -> Secret | None:
        name = call.args.get("token_env")
        if name is None:
            return None
        token = Secret(self._environ.get(name, ""), "token")  # so that no local in a traceback shows it
        if not token.usable:
            problem = f"the environment variable {name}, named by token_env, contains no bearer token: {USABLE}"
            raise ModelError(problem, retryable=False)
        return token


class _Post:
    """One POST request, made in a thread; `abort` and `failed` may be called from other threads meanwhile."""

    def __init__(
        self, site: tuple[bool, str, int, str], body: bytes, token: Secret | None, timeout_s: float, most: int,
        take_place: Callable[[], None],
    ) -> None:  # fmt: skip
        self._site, self._body, self._token = site, body, token
        self._timeout_s, self._most, self._take_place = timeout_s, most, take_place
        self._received = bytearray()
        self._socket: socket.socket | None = None
        self._aborted = False

    def __call__(self) -> str | AgentFailure:
        """Return the text of the answer, or the failure."""
        (secure, host, port, path), timeout_s = self._site, self._timeout_s
        connection = HTTPConnection(host, port, timeout=timeout_s)
        if secure:
            connection = HTTPSConnection(host, port, timeout=timeout_s, context=ssl.create_default_context())
        try:
            connection.connect()
            self._socket = connection.sock
            if self._aborted:
                return self.failed("timeout", "left behind")
            connection.putrequest("POST", path, skip_accept_encoding=True)
            for name, value in _HEADERS.items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(self._body)))
            if self._token is not None:
                connection.putheader("Authorization", f"Bearer {self._token.reveal()}")
            connection.endheaders(self._body)
            with connection.getresponse() as response:
                return self._refused(response) or self._read(response)
        except TimeoutError:  # exceptions by name only: their messages can contain data of the agent
            return self.failed("timeout", f"no answer within {self._timeout_s:g} s")
        except ConnectionRefusedError:
            return self.failed("refused", "the connection was refused")
        except ssl.SSLError as exc:
            return self.failed("tls", f"no secure connection: {exc.reason or type(exc).__name__}")
        except (IncompleteRead, ConnectionError) as exc:
            return self.failed("cut", f"the connection ended before the answer did ({type(exc).__name__})")
        except HTTPException as exc:
            return self.failed("not HTTP", f"the answer is not HTTP ({type(exc).__name__})")
        except (OSError, ValueError) as exc:
            return self.failed("unreachable" if self._socket is None else "cut", _reason(exc))
        finally:
            connection.close()

    def abort(self) -> None:
        """Shut the connection down so that the thread ends whatever the server does."""
        self._aborted = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def failed(self, kind: FailureKind, detail: str) -> AgentFailure:
        """Return a failure with the start of the received data, which is left out if it may contain a token."""
        start = "" if self._token is not None else self._received[:_LOOKED_AT].decode("utf-8", "replace")
        return failure(kind, detail, start)

    def received_text(self) -> str:
        """Return the received data without the token, cut to the longest body that is stored."""
        text = self._received[:MOST_KEPT_BYTES].decode("utf-8", "replace")
        if self._token is None:
            return text
        # a cut text may end in half a token
        cut = LONGEST_FORM * len(self._token.reveal()) if len(self._received) > MOST_KEPT_BYTES else 0
        text = scrub(text, [self._token])
        return text[: len(text) - cut]

    def _refused(self, response: HTTPResponse) -> AgentFailure | None:
        """Return the failure for a status or an encoding that is not accepted, or None."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if 200 <= response.status < 300 and encoding == "identity":
            return None
        if 200 <= response.status < 300:
            return self.failed("encoding", f"content encoding {encoding[:40]!r} was not requested and is not unpacked")
        with suppress(OSError, HTTPException):  # the status is what matters
            self._received += response.read1(_LOOKED_AT)
        if 300 <= response.status < 400:
            return self.failed("redirect", f"status {response.status}: redirects are not followed")
        return self.failed("status", f"the agent answered with status {response.status}")

    def _read(self, response: HTTPResponse) -> str | AgentFailure:
        declared = response.length
        received = self._received
        while len(received) <= MOST_KEPT_BYTES and (part := response.read1(_PART_BYTES)):
            received += part
            if len(received) > LARGE_BYTES:
                self._take_place()
        if len(received) > self._most:
            which = f"the first {MOST_KEPT_BYTES:,} are" if len(received) > MOST_KEPT_BYTES else "it is"
            return self.failed("too large", f"the answer has more than {self._most:,} bytes; {which} stored verbatim")
        if declared is not None and len(received) < declared:
            return self.failed("cut", f"{len(received):,} of {declared:,} bytes arrived")
        try:
            return received.decode("utf-8")
        except UnicodeDecodeError as exc:
            return self.failed("not UTF-8", f"byte {exc.start} of the answer is no UTF-8")


def _reason(exc: Exception) -> str:
    return (exc.strerror if isinstance(exc, OSError) else None) or type(exc).__name__


GROUP: Final = "assaymark.agents"
"""The entry point group in which an installed package names its agents."""

Decide = Callable[[Context], Any]
"""An agent: it returns a mapping in the reply format, its JSON text, or a `Decision` (or its mapping)."""

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_NOT_TRADED: Final = ("hold", "no_trade")
_INSTALLED: Final = itemgetter("stdlib", "purelib", "platlib")(sysconfig.get_paths())


class PythonAgent:
    """An external agent that is a callable of this process, or the name of one, imported when first needed."""

    def __init__(
        self, decide: Decide | str, *, timeout_s: float = PATIENCE_S, max_bytes: int = MOST_BYTES, strict: bool = False
    ) -> None:
        self._named = decide if isinstance(decide, str) else None
        self._decide = None if isinstance(decide, str) else decide
        self._timeout_s, self._max_bytes, self._strict = timeout_s, max_bytes, strict
        self._raised: list[str] = []  # appended to in threads

    def with_strict(self, strict: bool) -> PythonAgent:
        """Return the same agent, with or without ``strict``: an exception then stops the run."""
        decide = self._decide or self._named or ""
        return PythonAgent(decide, timeout_s=self._timeout_s, max_bytes=self._max_bytes, strict=strict)

    @property
    def raised(self) -> Counter[str]:
        """The number of times that the callable raised each exception: type, message, file and line."""
        return Counter(self._raised)

    def check(self) -> None:
        """Import the callable, before a run. Raises `ModelError`."""
        self._callable()

    async def complete(self, call: CallSpec) -> Reply:
        """Call the agent with the context of a call. An exception is a reply with ``finish`` ``failed``."""
        refuse(call, list(external_argument_problems(call.model, call.args)))
        timeout_s = float(call.args.get("timeout_s", self._timeout_s))
        try:
            async with asyncio.timeout(timeout_s):
                answer = await apart(lambda: self._call_agent(call))
        except TimeoutError:
            answer = failure("timeout", f"no answer within {timeout_s:g} s")
        if isinstance(answer, AgentFailure):
            return answer.reply(call.model)
        if len(answer.encode("utf-8", "surrogatepass")) > self._max_bytes:
            detail = f"the answer has more than {self._max_bytes:,} bytes; it is stored verbatim"
            return failure("too large", detail, answer).reply(call.model, raw=answer[:MOST_KEPT_BYTES])
        return to_reply(answer, call.model)

    def _call_agent(self, call: CallSpec) -> str | AgentFailure:
        """Return the callable's result as text, or the failure. Runs in the thread."""

        async def awaited(result: Awaitable[object]) -> object:
            return await result

        decide = self._callable()
        context = read_request(call).context
        try:
            result = decide(context)
            return _text(asyncio.run(awaited(result)) if inspect.isawaitable(result) else result)
        except BaseException as exc:  # any exception of the agent is its outcome, even SystemExit
            raised = failure("exception", _describe(exc))
            # file and line of the exception, in the user's code rather than in an installed package if possible
            frames = [(one.filename, one.lineno) for one in extract_tb(exc.__traceback__) if one.filename != __file__]
            if not frames and (code := getattr(decide, "__code__", None)) is not None:  # the call itself failed
                frames = [(code.co_filename, code.co_firstlineno)]
            user_frames = [frame for frame in frames if not frame[0].startswith(_INSTALLED)]
            text = raised.detail
            if frames:
                path, line = (user_frames or frames)[-1]
                here = Path(path)
                shown = here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here
                text += f" ({failure('exception', str(shown)).detail}, line {line})"
            if self._strict:
                stops = "stopped here, because of --strict-agents; every reply so far is kept"
                raise InputError(call.model, [f"raised {text}; {stops}"]) from None
            self._raised.append(text)
            return raised

    def _callable(self) -> Decide:
        if self._decide is None:
            self._decide = load_agent(self._named or "")
        return self._decide


def load_agent(name: str) -> Decide:
    """Import the callable ``package.module:attribute``, or an entry point of the group ``assaymark.agents``."""
    try:
        if (point := _entry_point(name)) is not None:
            target = point.load()
        else:
            module, _, attribute = name.partition(":")
            target = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as exc:
        problem = failure("exception", _describe(exc)).detail
        if isinstance(exc, ModuleNotFoundError) and exc.name == name.partition(":")[0].partition(".")[0]:
            module, here = exc.name, Path.cwd()
            advice = f"put the folder that holds {module}.py or {module}/ in front of the command: PYTHONPATH=FOLDER"
            if (here / f"{module}.py").is_file() or (here / module).is_dir():
                advice = f"{module} is in this folder: put PYTHONPATH=. in front of the command"
            problem = f"there is no module {module!r} on the path of Python; {advice}, or install it"
        raise ModelError(f"python/{name} cannot be loaded: {problem}", retryable=False) from None
    if not callable(target):
        raise ModelError(f"python/{name} is not callable (got {type(target).__name__})", retryable=False)
    decide: Decide = target
    return decide


def is_agent_name(name: str) -> bool:
    """True if a name has the form ``package.module:attribute`` or is an installed entry point; imports nothing."""
    return _TARGET.fullmatch(name) is not None or _entry_point(name) is not None


def _entry_point(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


def _text(result: object) -> str | AgentFailure:
    """Return a callable's result as the text of a reply; well-formed parts of a decision become the reply format."""
    if isinstance(result, str):
        return result
    if not isinstance(result, Decision | Mapping):
        kind = type(result).__name__
        return failure("wrong type", f"must return a mapping, a JSON text or a Decision (got {kind})")
    try:
        raw = to_json(result)
        if "actions" not in raw or "orders" in raw:
            return canonical_json(raw)
        # parts that are not in a decision's form stay unchanged, so that the parser rejects them
        fields: dict[str, JSON] = {"orders": raw["actions"], "rationale": raw.get("rationale")}
        actions, texts = raw["actions"], raw.get("rationales")
        if isinstance(actions, list) and parts_of(raw, "actions") == actions:
            fields["orders"] = [
                {"instrument": action.get("instrument"), "side": action.get("kind")}
                | ({} if action.get("quantity") is None else {"quantity": action["quantity"]})
                for action in actions
                if action.get("kind") not in _NOT_TRADED
            ]
        if isinstance(texts, list) and parts_of(raw, "rationales") == texts:
            judged = [str(text.get("text", "")) for text in texts if text.get("kind", "summary") in JUDGED_KINDS]
            fields["rationale"] = "\n\n".join(judged)
        agent = part_of(raw, "agent")
        optional = {"confidence": raw.get("confidence"), **{name: agent.get(name) for name in ("model", "fingerprint")}}
        return canonical_json(fields | {name: arg for name, arg in optional.items() if arg is not None and arg != ""})
    except (TypeError, ValueError, RecursionError) as exc:
        return failure("wrong type", f"what was returned has no JSON form: {_describe(exc)}")


def _describe(exc: BaseException) -> str:
    """Return the type and message of an exception; the message is made by the agent's code and may itself fail."""
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:
        return type(exc).__name__
