"""One model call: what is asked, the key that names it, and what comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring as _quoted
from typing import Final, Literal, Protocol

from assaymark.engine.blobs import Packed, pack, text_bytes
from assaymark.errors import LedgerError, ModelError
from assaymark.records import JSON, canonical_json, sha256_text

_AGAIN = '"again":true,'
Role = Literal["system", "user"]
Finish = Literal["stop", "length", "refusal", "failed"]


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its sha256, computed once and shared by every call that shows it."""

    text: str
    sha256: str

    @classmethod
    def of(cls, text: str) -> Text:
        """``text`` with its digest."""
        return cls(text, sha256_text(text))


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt. Its parts are shown in order with an empty line between them.

    A prompt is cut into parts where calls share text (the rubric, an agent's material), so that each part is hashed
    and stored once however many calls show it.
    """

    role: Role
    parts: tuple[Text, ...]
    canonical: str = field(init=False, repr=False, compare=False)
    """Role and digests as canonical JSON, made once however many calls show the message."""

    def __post_init__(self) -> None:
        digests = ",".join([_quoted(part.sha256) for part in self.parts])
        object.__setattr__(self, "canonical", f"[{_quoted(self.role)},[{digests}]]")

    @property
    def text(self) -> str:
        """The message as the model reads it."""
        return "\n\n".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSpec:
    """Everything that can change the answer of a model, and nothing else.

    ``model`` is ``provider/name``; ``template`` is the sha256 of the prompt template; ``order`` the presentation order
    of a pair; ``trial`` counts repetitions of one question; ``args`` are the model's own arguments. ``again`` marks the
    same question asked once more because the reply was no JSON (trial 1b); other calls do not name it.
    """

    model: str
    messages: tuple[Message, ...]
    template: str
    trial: int = 1
    order: int = 0
    seed: int | None = None
    temperature: float | None = None
    effort: str | None = None
    schema: Text | None = None
    again: bool = False
    args: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def canonical(self) -> bytes:
        """The call as canonical JSON, every text standing by its digest: the bytes that the key is the sha256 of."""
        # Written out by hand because a million keys are planned at once; a test compares it with canonical_json.
        messages = ",".join([message.canonical for message in self.messages])
        return (
            f'{{{_AGAIN if self.again else ""}"args":{canonical_json(self.args) if self.args else "{}"},'
            f'"effort":{_optional(self.effort)},"messages":[{messages}],"model":{_quoted(self.model)},"order":{self.order},'
            f'"schema":{_optional(self.schema.sha256 if self.schema else None)},'
            f'"seed":{"null" if self.seed is None else self.seed},'
            f'"temperature":{"null" if self.temperature is None else canonical_json(self.temperature)},'
            f'"template":{_quoted(self.template)},"trial":{self.trial}}}'
        ).encode("utf-8", "surrogatepass")

    @property
    def key(self) -> str:
        """The call key: sha256 of `canonical`, as 64 hex digits. Equal keys ask the same question."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def texts(self) -> tuple[Text, ...]:
        """Every text of the call: the parts of its messages in order, then the schema if there is one."""
        parts = tuple([part for message in self.messages for part in message.parts])
        return (*parts, self.schema) if self.schema else parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered, exactly as it came.

    ``model`` and ``fingerprint`` are the provider's own words for who answered. ``seconds`` is one attempt, without
    queueing and retries; a model may leave it empty, and the runner then measures it. ``finish`` is ``failed`` when an
    external agent gave no answer: the text then says how that came about, and the failure stands as its answer.

    ``raw`` is the provider's whole response body as JSON text, without any header of the request or the response; the
    ledger keeps it as an object of its own. ``cached_tokens`` is the part of ``input_tokens`` that the provider read
    from its cache, ``reasoning_tokens`` the part of its output that it thought and did not show.
    """

    text: str
    model: str
    fingerprint: str | None = None
    finish: Finish = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    raw: str | None = field(default=None, repr=False)
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


def refusal_of(error: ModelError, model: str) -> Reply:
    """A call that was turned away for good, as its outcome. An answer with a status of failure is not billed."""
    return Reply(text=str(error), model=model, finish="refusal", input_tokens=0, output_tokens=0)


class Model(Protocol):
    """Something that answers calls. Raises `ModelError` when an attempt fails; anything else is a defect."""

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call."""
        ...


def _optional(text: str | None) -> str:
    return "null" if text is None else _quoted(text)


_KNOWN_TEXTS: Final = 200_000  # digests remembered while planning, about 25 MB


class Unseen:
    """The texts of planned calls that the ledger is not known to have, by digest."""

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
    """A text as the object that it is stored as."""
    packed = pack(text_bytes(text.text))
    if packed.sha256 != text.sha256:
        raise LedgerError(
            f"a prompt part is named {text.sha256} but its text has the sha256 {packed.sha256}; use Text.of"
        )
    return packed
