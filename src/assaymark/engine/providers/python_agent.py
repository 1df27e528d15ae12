"""An agent that is a Python callable: it is handed a Context in a thread and returns what it decided."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
import sysconfig
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import reduce
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.loop import MOST_KEPT_BYTES
from assaymark.engine.providers.http_agent import (
    MOST_BYTES,
    PATIENCE_S,
    AgentFailure,
    answered,
    failure,
    read_request,
    require_arguments,
)
from assaymark.engine.providers.transports import apart
from assaymark.errors import InputError, ModelError
from assaymark.prompting.texts import JUDGED_KINDS
from assaymark.records import JSON, Context, Decision, canonical_json, to_json

GROUP: Final = "assaymark.agents"
"""The entry point group in which an installed package names its agents."""

Decide = Callable[[Context], Any]
"""An agent: what it returns is a mapping of the reply format, its JSON text, or a `Decision` (or its mapping)."""

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_NOT_TRADED: Final = ("hold", "no_trade")
_INSTALLED: Final = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


class PythonAgent:
    """A model that is a callable of this process, or the name of one, imported when it is first needed.

    ``decide`` takes a `Context` and may be a coroutine function; as text it is ``package.module:attribute`` or an entry
    point of the group ``assaymark.agents``. Calls run at the same time, each in its own thread. A thread that is past
    ``timeout_s`` (``args.timeout_s`` goes before it) is left behind: Python cannot stop it. ``max_bytes`` is the
    longest answer; with ``strict`` an exception stops the run, in place of being recorded as no answer.
    """

    def __init__(
        self, decide: Decide | str, *, timeout_s: float = PATIENCE_S, max_bytes: int = MOST_BYTES, strict: bool = False
    ) -> None:
        self._named = decide if isinstance(decide, str) else None
        self._decide = None if isinstance(decide, str) else decide
        self._timeout_s, self._max_bytes, self._strict = timeout_s, max_bytes, strict
        self._raised: list[str] = []  # appended to in threads

    def held(self, strict: bool) -> PythonAgent:
        """The same agent, strict or not."""
        decide = self._decide or self._named or ""
        return PythonAgent(decide, timeout_s=self._timeout_s, max_bytes=self._max_bytes, strict=strict)

    @property
    def raised(self) -> Counter[str]:
        """How often the callable raised what: type, message, file and line."""
        return Counter(self._raised)

    def check(self) -> None:
        """Import the callable, before a run asks anything."""
        self._callable()

    async def complete(self, call: CallSpec) -> Reply:
        """Hand the context of a call to the callable. An exception is its outcome: ``finish`` is ``failed``."""
        require_arguments(call)
        timeout_s = float(call.args.get("timeout_s", self._timeout_s))
        try:
            async with asyncio.timeout(timeout_s):
                found = await apart(lambda: self._decided(call))
        except TimeoutError:
            found = failure("timeout", f"no answer within {timeout_s:g} s")
        if isinstance(found, AgentFailure):
            return found.reply(call.model)
        if len(found.encode("utf-8", "surrogatepass")) > self._max_bytes:
            detail = f"the answer has more than {self._max_bytes:,} bytes; it is kept as it came"
            return failure("too large", detail, found).reply(call.model, raw=found[:MOST_KEPT_BYTES])
        return answered(found, call.model)

    def _decided(self, call: CallSpec) -> str | AgentFailure:
        """The text of what the callable returned, or what went wrong; in the thread."""
        decide = self._callable()
        context = read_request(call).context
        try:
            result = decide(context)
            return _text(asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result)
        except BaseException as exc:  # whatever the agent raises is its outcome, even an attempt to leave the program
            found = failure("exception", _named(exc))
            what = f"{found.detail}{_where(exc, decide)}"
            if self._strict:
                stops = "stopped here, because of --strict-agents; every reply so far is kept"
                raise InputError(call.model, [f"raised {what}; {stops}"]) from None
            self._raised.append(what)
            return found

    def _callable(self) -> Decide:
        if self._decide is None:
            self._decide = load_agent(self._named or "")
        return self._decide


def load_agent(name: str) -> Decide:
    """The callable called ``package.module:attribute``, or by an entry point of the group ``assaymark.agents``."""
    try:
        if (point := _entry_point(name)) is not None:
            found = point.load()
        else:
            module, _, attribute = name.partition(":")
            found = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as exc:
        problem = failure("exception", _named(exc)).detail
        if isinstance(exc, ModuleNotFoundError) and exc.name == name.partition(":")[0].partition(".")[0]:
            module, here = exc.name, Path.cwd()
            advice = f"put the folder that holds {module}.py or {module}/ in front of the command: PYTHONPATH=FOLDER"
            if (here / f"{module}.py").is_file() or (here / module).is_dir():
                advice = f"{module} is in this folder: put PYTHONPATH=. in front of the command"
            problem = f"there is no module {module!r} on the path of Python; {advice}, or install it"
        raise ModelError(f"python/{name} cannot be loaded: {problem}", retryable=False) from None
    if not callable(found):
        raise ModelError(f"python/{name} is no callable (got {type(found).__name__})", retryable=False)
    decide: Decide = found
    return decide


def is_agent_name(name: str) -> bool:
    """Whether a name has the form ``package.module:attribute`` or is an installed entry point; imports nothing."""
    return _TARGET.fullmatch(name) is not None or _entry_point(name) is not None


def _entry_point(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


async def _awaited(result: Awaitable[object]) -> object:
    return await result


def _text(result: object) -> str | AgentFailure:
    """What was returned as the text of a reply."""
    if isinstance(result, str):
        return result
    if isinstance(result, Decision | Mapping):
        try:
            raw = to_json(result)
            return canonical_json(_orders(raw) if "actions" in raw and "orders" not in raw else raw)
        except (TypeError, ValueError, RecursionError) as exc:
            return failure("wrong type", f"what was returned has no JSON form: {_named(exc)}")
    seen = type(result).__name__
    return failure("wrong type", f"must return a mapping, a JSON text or a Decision (got {seen})")


def _orders(decision: dict[str, JSON]) -> dict[str, JSON]:
    """A decision in the reply format. What is not of a decision's form stays as it is, for the reader to refuse."""
    actions: JSON = decision["actions"]
    rationales: JSON = decision.get("rationales")
    found = {"orders": actions, "rationale": decision.get("rationale")}
    if _is_list_of_objects(actions):
        found["orders"] = [
            {"instrument": one.get("instrument"), "side": one.get("kind")}
            | ({} if one.get("quantity") is None else {"quantity": one["quantity"]})
            for one in actions
            if one.get("kind") not in _NOT_TRADED
        ]
    if _is_list_of_objects(rationales):
        judged = [str(one.get("text", "")) for one in rationales if one.get("kind", "summary") in JUDGED_KINDS]
        found["rationale"] = "\n\n".join(judged)
    agent = decision.get("agent")
    said = agent if isinstance(agent, dict) else {}
    optional = {"confidence": decision.get("confidence"), **{name: said.get(name) for name in ("model", "fingerprint")}}
    return found | {name: value for name, value in optional.items() if value is not None and value != ""}


def _is_list_of_objects(raw: JSON) -> bool:
    return isinstance(raw, list) and all(isinstance(one, dict) for one in raw)


def _where(exc: BaseException, decide: Decide) -> str:
    """File and line where a callable raised, in code that is not of an installed package if any of it is not."""
    frames = [(one.filename, one.lineno) for one in extract_tb(exc.__traceback__) if one.filename != __file__]
    if not frames and (code := getattr(decide, "__code__", None)) is not None:  # it could not even be called
        frames = [(code.co_filename, code.co_firstlineno)]
    own = [one for one in frames if not one[0].startswith(_INSTALLED)]
    if not frames:
        return ""
    path, line = (own or frames)[-1]
    here = Path(path)
    shown = here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here
    return f" ({failure('exception', str(shown)).detail}, line {line})"


def _named(exc: BaseException) -> str:
    """An exception by its type and message; the message is the agent's own and may itself fail."""
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:
        return type(exc).__name__
