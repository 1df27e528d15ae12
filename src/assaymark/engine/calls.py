"""One model call: the request, the key that names it, and the reply."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.encoder import JSONEncoder
from json.encoder import encode_basestring as _quoted
from typing import ClassVar, Final, Literal, Protocol

import zstandard

from assaymark.errors import InputError, LedgerError, ModelError
from assaymark.protocol import AgentSpec, JudgeSpec
from assaymark.records import JSON, canonical_json, sha256_text
from assaymark.text import code_points

Codec = Literal["raw", "zstd"]

INLINE_BYTES = 1 << 20
"""Packed objects up to this size live in the ledger's table, larger ones in a file beside it."""

_WORTH_PACKING = 256  # below this the zstd frame costs about what it saves
_LEVEL = 3


@dataclass(frozen=True, slots=True)
class Packed:
    """An object as it is stored: ``size`` counts the bytes before packing, which ``sha256`` is the digest of."""

    sha256: str
    codec: Codec
    size: int
    data: bytes


def pack(data: bytes) -> Packed:
    """Return ``data`` with its digest, compressed if that makes it smaller."""
    digest = hashlib.sha256(data).hexdigest()
    if len(data) >= _WORTH_PACKING:
        packed = _ZSTD.compressor.compress(data)
        if len(packed) < len(data):
            return Packed(digest, "zstd", len(data), packed)
    return Packed(digest, "raw", len(data), data)


def unpack(sha256: str, codec: str, size: int, data: bytes) -> bytes:
    """Return the bytes that were packed. Raises `LedgerError` unless size and digest are those that were stored."""
    if codec not in ("raw", "zstd"):
        raise LedgerError(f"object {sha256}: unknown codec {codec!r} (known: raw, zstd)")
    if not isinstance(data, bytes):
        raise damaged(f"object {sha256}", f"it is stored as {type(data).__name__}")
    plain = data
    if codec == "zstd":
        try:
            # A damaged frame header may announce any size, and the decompressor would reserve it.
            announced = zstandard.frame_content_size(data)
            if announced != size:
                raise damaged(f"object {sha256}", f"its frame announces {announced} bytes where {size} were stored")
            plain = _ZSTD.decompressor.decompress(data)
        except zstandard.ZstdError as exc:
            raise damaged(f"object {sha256}", f"it does not unpack ({exc})") from exc
    digest = hashlib.sha256(plain).hexdigest()
    if digest != sha256 or len(plain) != size:
        raise damaged(
            f"object {sha256}", f"it holds {len(plain)} bytes with the sha256 {digest} where {size} were stored"
        )
    return plain


def text_bytes(text: str) -> bytes:
    """Encode ``text`` as UTF-8. `bytes_text` restores lone surrogates too, which models do send."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(data: bytes) -> str:
    """The text that `text_bytes` turned into ``data``."""
    return data.decode("utf-8", "surrogatepass")


class _Zstd(threading.local):
    """One compressor and decompressor per thread: making them costs more than packing a reply."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_ZSTD = _Zstd()


def damaged(what: str, how: str) -> LedgerError:
    """Return the error for an object or a row that is not what was stored."""
    return LedgerError(f"{what} is damaged: {how}; restore the call log from a copy")


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
    """One message of a prompt. Its parts are shown in order with an empty line between them."""

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


class _Keyed:
    __slots__ = ("_key",)  # the key of a call, which is no field of it
    _key: str


@dataclass(frozen=True, slots=True)
class CallSpec(_Keyed):
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

    @classmethod
    def to(
        cls, spec: AgentSpec | JudgeSpec, messages: tuple[Message, ...], template: str, schema: Text | None = None,
        trial: int = 1, order: int = 0,
    ) -> CallSpec:  # fmt: skip
        """Return the call that sends messages to a model with the settings of its plan."""
        return cls(
            spec.model, messages, template, trial, order, spec.seed, spec.temperature, spec.effort, schema,
            args=dict(spec.args),
        )  # fmt: skip

    @property
    def canonical(self) -> bytes:
        """The call as canonical JSON with a digest in place of each text: the bytes that the key is the sha256 of."""
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
        if not hasattr(self, "_key"):  # kept, because every stage asks for it
            object.__setattr__(self, "_key", hashlib.sha256(self.canonical).hexdigest())
        return self._key

    @property
    def texts(self) -> tuple[Text, ...]:
        """Every text of the call: the parts of its messages in order, then the schema if there is one."""
        parts = tuple([part for message in self.messages for part in message.parts])
        return (*parts, self.schema) if self.schema else parts

    def output_tokens(self, unset: int) -> int:
        """The longest reply that the call allows, in tokens: its ``max_tokens``, or ``unset`` without them."""
        most = self.args.get("max_tokens", unset)
        return int(most) if isinstance(most, int | float) else unset

    def shown(self, role: Role = "user") -> tuple[str, ...]:
        """The texts of the messages of a role, part by part."""
        return tuple([part.text for message in self.messages if message.role == role for part in message.parts])


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a model, stored verbatim.

    ``model`` and ``fingerprint`` are the model and version that the provider reports. ``seconds`` is the time of one
    attempt, without queueing and retries; where a model leaves it empty, the runner measures it. ``finish`` is
    ``failed`` when an external agent gave no answer: the text then gives the reason, and the failure is the answer.

    ``raw`` is the provider's whole response body as JSON text, without any header of the request or the response; the
    ledger stores it as a separate object. ``cached_tokens`` is the part of ``input_tokens`` that the provider read
    from its cache, ``reasoning_tokens`` the part of its output that was reasoning and is not in ``text``.
    """

    text: str
    model: str
    finish: Finish = "stop"
    raw: str | None = field(default=None, repr=False)
    fingerprint: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


def one_line(text: str, most: int) -> str:
    """Return external text on one line: printable, at most ``most`` characters."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in code_points(text[: 8 * most])).split())
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def refusal_of(error: ModelError, model: str) -> Reply:
    """Return a final refusal of a call as its reply. A response with an error status is not billed."""
    return Reply(str(error), model, "refusal", input_tokens=0, output_tokens=0)


class Model(Protocol):
    """Something that answers calls. Raises `ModelError` when an attempt fails; anything else is a defect."""

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call."""
        ...


@dataclass(frozen=True, slots=True)
class BuiltInModel:
    """A `Model` that answers the rendered prompt by fixed rules and reads nothing else."""

    name: str

    version: ClassVar[str] = "1"
    """Changed with every change that can alter an answer; part of the fingerprint unless it is empty."""
    unreadable: ClassVar[tuple[type[Exception], ...]] = (InputError,)

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call; raise ModelError if the prompt is not one for this model or an argument is wrong."""
        try:
            text = self.answer(call)
        except self.unreadable as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        return Reply(text, model=self.name, fingerprint=f"{self.name}@{self.version}" if self.version else None)

    def answer(self, call: CallSpec) -> str:
        """Return the text of the reply."""
        raise NotImplementedError


def _optional(text: str | None) -> str:
    return "null" if text is None else _quoted(text)


def seal(*fields: str | int | float | None) -> str:
    """sha256 over the fields of a row as a JSON list, as 64 hex digits."""
    return hashlib.sha256(_LIST.encode(fields).encode("utf-8", "surrogatepass")).hexdigest()


_LIST: Final = JSONEncoder(ensure_ascii=False)  # json.dumps with an option makes one for each row
