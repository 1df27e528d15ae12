"""One model call: what is asked, the key that names it, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from assaymark.records import JSON, canonical_json, sha256_text

Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its sha256, computed once and shared by every call that shows it.

    >>> Text.of("hello").sha256[:8]
    '2cf24dba'
    """

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

    role: Literal["system", "user"]
    parts: tuple[Text, ...]

    @property
    def text(self) -> str:
        """The message as the model reads it."""
        return "\n\n".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSpec:
    """Everything that can change the answer of a model, and nothing else.

    ``template`` is the sha256 of the prompt template; ``order`` the presentation order of a pair; ``trial`` counts
    repetitions of one question; ``args`` are the model's own arguments.
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
    args: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The call key: sha256 of canonical JSON in which every text stands by its digest."""
        messages = ",".join(
            f'["{message.role}",{json.dumps([part.sha256 for part in message.parts], separators=(",", ":"))}]'
            for message in self.messages
        )
        # Written out by hand because a million keys are planned at once; the test compares it with canonical_json.
        return sha256_text(
            f'{{"args":{canonical_json(self.args) if self.args else "{}"},"effort":{json.dumps(self.effort)},'
            f'"messages":[{messages}],"model":{json.dumps(self.model, ensure_ascii=False)},"order":{self.order},'
            f'"schema":{json.dumps(self.schema.sha256 if self.schema else None)},"seed":{json.dumps(self.seed)},'
            f'"temperature":{json.dumps(self.temperature)},"template":{json.dumps(self.template)},"trial":{self.trial}}}'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered, exactly as it came. ``seconds`` is one attempt, without queueing and retries."""

    text: str
    model: str
    fingerprint: str | None = None
    finish: Finish = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None


class Model(Protocol):
    """Something that answers calls. Raises `ModelError` when an attempt fails; anything else is a defect."""

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call."""
        ...
