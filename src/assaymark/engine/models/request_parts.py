"""What requests to Anthropic and to Google are made of in the same way: the two halves of a prompt, and a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assaymark.engine.calls import CallSpec
from assaymark.engine.models.wire import refuse, strict_schema
from assaymark.records import JSON


def prompt_problems(call: CallSpec) -> Iterator[str]:
    """Why the messages of a call cannot be sent: the system's come before the user's, of which there is at least one.

    >>> from assaymark.engine.calls import Message, Text
    >>> alone = CallSpec(model="google/m", messages=(Message("system", (Text.of("Grade."),)),), template="")
    >>> list(prompt_problems(alone))
    ['the messages must be those of the system, if any, and then one or more of the user (got system)']
    """
    roles = [message.role for message in call.messages]
    if "user" not in roles or roles != sorted(roles):
        allowed = "those of the system, if any, and then one or more of the user"
        yield f"the messages must be {allowed} (got {', '.join(roles) or 'none'})"


def system_and_users(call: CallSpec) -> tuple[str, list[str]]:
    """The text of the system, which may be empty, and the texts of the user.

    Half a surrogate pair, which UTF-8 cannot carry, becomes its escape: no text may keep itself from its judges.

    >>> from assaymark.engine.calls import Message, Text
    >>> asked = CallSpec(model="google/m", messages=(Message("user", (Text.of("a" + chr(0xD800)),)),), template="")
    >>> system_and_users(asked)
    ('', ['a\\\\ud800'])
    """
    texts = [(message.role, message.text.encode("utf-8", "backslashreplace").decode()) for message in call.messages]
    system = "\n\n".join(text for role, text in texts if role == "system")
    return system, [text for role, text in texts if role == "user"]


def reply_schema(call: CallSpec, unknown: frozenset[str], api: str) -> dict[str, JSON] | None:
    """The schema of the reply, unchanged; None if the call has none.

    Parameters
    ----------
    unknown : frozenset of str
        Keywords of `strict_schema` that this provider's structured output does not have. ``minItems`` in it leaves 0
        and 1.
    api : str
        What the provider calls itself, for the message.

    Raises
    ------
    ModelError
        It has such a keyword, or is no strict schema at all: to leave a keyword out would be to ask another question.
    """
    if call.schema is None:
        return None
    schema = strict_schema(call.schema)
    found = _found(schema, "schema", unknown)
    refuse(call, [f"{where}: {name!r} is not known to the structured output of the {api}" for where, name in found])
    return schema


def _found(node: Any, where: str, unknown: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Where a schema has keywords that are not known. `strict_schema` has seen to its form."""
    for name in sorted(unknown & node.keys()):
        if name != "minItems" or node[name] not in (0, 1):
            yield where, name
    inner = [(f"{where}.{name}", part) for name, part in node.get("properties", {}).items()]
    inner += [(f"{where}.$defs.{name}", part) for name, part in node.get("$defs", {}).items()]
    inner += [(f"{where}.anyOf[{place}]", part) for place, part in enumerate(node.get("anyOf", ()))]
    inner += [(f"{where}.items", node["items"])] if "items" in node else []
    for place, part in inner:
        yield from _found(part, place, unknown)
