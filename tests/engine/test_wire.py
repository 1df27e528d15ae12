"""Shared code of provider clients: waits, hidden keys, addresses, schemas, and clients that are closed in time."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assaymark.agents import reply_schema as agent_schema
from assaymark.engine import CallSpec, Text
from assaymark.engine.providers import base as wire
from assaymark.engine.providers import transports
from assaymark.engine.providers.base import as_model_error, read_object, retry_after_of, strict_schema
from assaymark.engine.providers.transports import Provider, Secret, Transport, address_problem, printable, scrub
from assaymark.errors import ModelError
from assaymark.judging import load_rubric, pairs, rubric_form, rubric_names

HOME = Provider("acme", "json", "acme", ("ACME_KEY", "ACME_OLD_KEY"), "https://api.acme.test/v1", "ACME_BASE_URL")
KEY = "canary-8d1e/44+key"
AT = Transport(HOME, "m-1", None, "ACME_KEY", Secret(KEY))


def call(**args):
    return CallSpec(model="acme/m-1", messages=(), template="", args=args)


def test_what_may_pass_is_asked_again_and_nothing_else_after_so_long_a_wait():
    may_pass = {408, 409, 425, 429, 500, 502, 503, 504, 520, 529}
    for status in (*may_pass, 301, 400, 401, 402, 403, 404, 413, 422, 501, 505):
        assert wire.refusal(AT, status, frozenset(), "").retryable == (status in may_pass), status
    at = "Sun, 06 Nov 1994 08:49:37 GMT"
    for headers, seconds in (
        ({}, None), ({"retry-after": "7"}, 7.0), ({"Retry-After": " 0.5 "}, 0.5), ({"retry-after": "a while"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25), ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1e99"}, 86_400.0), ({"retry-after": "inf"}, None), ({"retry-after": "nan"}, None),
        ({"retry-after": at, "date": "Sun, 06 Nov 1994 08:49:07 GMT"}, 30.0), ({"retry-after": at}, 0.0),
        ({"retry-after": at, "date": "Sun, 06 Nov 1994 09:00:00 GMT"}, 0.0),
    ):  # fmt: skip
        assert retry_after_of(headers) == seconds, headers


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date"]), st.text(max_size=30)))
def test_no_header_makes_waiting_fail(headers):
    found = retry_after_of(headers)
    assert found is None or 0 <= found <= 86_400


_KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=60)


@example('"0000000', "", "")
@example('\\"/000000', "\\", "")
@given(_KEYS.filter(lambda key: "[key]" not in key), st.text(max_size=20), st.text(max_size=20))
def test_a_key_is_in_no_scrubbed_text(key, before, after):
    secret = Secret(key)
    told = f"{before} {key} {after}"
    assert key not in scrub(told, [secret]).replace("[key]", "")
    assert key not in json.loads(scrub(json.dumps({"said": told}), [secret]))["said"].replace("[key]", "")
    assert key not in f"{secret!r} {secret}"


def test_where_a_call_goes_and_with_which_key_and_what_is_missing_is_said_before_anything_is_sent():
    near, here = {"ACME_BASE_URL": "http://127.0.0.1:1/v1"}, {"base_url": "http://h/v1"}
    for args, environ, address, key_env in (
        ({}, {"ACME_KEY": KEY}, HOME.home, "ACME_KEY"), ({}, {"ACME_OLD_KEY": KEY}, HOME.home, "ACME_OLD_KEY"),
        ({}, {"ACME_KEY": KEY, **near}, near["ACME_BASE_URL"], "ACME_KEY"),
        ({}, near, near["ACME_BASE_URL"], "no key"), (here, {"ACME_KEY": KEY}, "http://h/v1", "no key"),
        (here | {"api_key_env": "MINE"}, {"MINE": KEY}, "http://h/v1", "MINE"),
        ({"api_key_env": "MINE"}, {"MINE": KEY, "ACME_KEY": "of-another"}, HOME.home, "MINE"),
    ):  # fmt: skip
        at = transports.transport(HOME, call(**args), environ)
        assert (at.address, at.key_env, at.model) == (address, key_env, "m-1")
        assert at.key == (None if key_env == "no key" else Secret(KEY))
    for args, environ, reason in (
        ({}, {}, "acme/m-1 needs a key: set the environment variable ACME_KEY or ACME_OLD_KEY"),
        (here | {"api_key_env": "MINE"}, {"ACME_KEY": KEY}, "set the environment variable MINE"),
        ({}, {"ACME_KEY": KEY, "ACME_BASE_URL": "https://u:s3cret@h"}, "ACME_BASE_URL: must be http"),
        ({}, {"ACME_KEY": "naïve-key"}, "ACME_KEY contains no key"),
    ):
        with pytest.raises(ModelError, match=reason) as caught:
            transports.transport(HOME, call(**args), environ)
        assert not caught.value.retryable
        assert "s3cret" not in str(caught.value)


def test_no_sdk_is_imported_with_the_package_and_one_that_is_missing_named():
    with pytest.raises(ModelError, match=r"pip install 'assaymark\[acme\]'") as caught:
        transports.load_sdk(replace(HOME, sdk="no_such_sdk_anywhere"))
    assert caught.value.quota
    assert transports.load_sdk(HOME) is json
    script = (
        "import sys, assaymark.engine.providers.openai, assaymark.engine.prices\n"
        "print(sorted({'openai', 'anthropic', 'google.genai', 'httpx2', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class Client:
    """A client that knows whether it was closed."""

    def __init__(self, at):
        self.at, self.closed_on = at, None

    async def close(self):
        self.closed_on = asyncio.get_running_loop()


def test_a_client_is_made_once_for_a_loop_and_closed_with_it_or_before():
    made: list[Client] = []

    def make(at):
        made.append(Client(at))
        return made[-1]

    clients = transports.PerLoop(make, lambda client: client.close())

    async def use(early):
        both = await asyncio.gather(clients.of(AT), clients.of(AT))
        assert both[0] is both[1]
        assert both[0].closed_on is None
        assert await clients.of(replace(AT, base_url="http://h/v1")) is not both[0]
        for _ in range(2 * early):
            await clients.aclose()
        assert (both[0].closed_on is not None) == early
        assert (await clients.of(AT) is both[0]) != early
        return asyncio.get_running_loop()

    loops = [asyncio.run(use(early)) for early in (False, False, True)]
    assert [client.closed_on for client in made] == [loops[0]] * 2 + [loops[1]] * 2 + [loops[2]] * 3


def failed(exc):
    """Return the `ModelError` that an exception inside an attempt becomes."""

    async def work():
        raise exc

    with pytest.raises(ModelError) as caught:
        asyncio.run(wire.attempt(replace(AT, timeout_s=5.0), work()))
    return caught.value


class StatusError(Exception):
    """An error as SDKs make it: with a status, a body and headers."""

    def __init__(self, status, body=None, headers=None):
        super().__init__("status")
        self.status_code, self.body = status, body
        self.response = type("Response", (), {"headers": headers or {}})()


def test_an_attempt_that_failed_keeps_nothing_of_the_request():
    found = failed(StatusError(429, {"error": {"message": f"slow, {KEY}"}}, {"Retry-After": "3"}))
    assert str(found) == "acme: too many requests (429) for 'm-1': slow, [key]"
    assert (found.retryable, found.retry_after, found.quota) == (True, 3.0, False)
    assert (found.__cause__, found.__context__) == (None, None)
    ours = ModelError("as it is", retryable=False)
    assert failed(ours) is ours
    found = as_model_error(StatusError(401), replace(AT, key=None, key_env="no key", base_url="http://h/v1"))
    assert "http://h/v1 requires a key (401); name its environment variable in args.api_key_env" in str(found)


def test_every_failure_is_one_line_that_says_what_to_do():
    page = StatusError(500, "<html><body>Oops", {"content-type": "text/html"})
    for exc, said, retryable in (
        (TimeoutError(), "no reply from https://api.acme.test/v1 within 5 s", True),
        (ConnectionRefusedError(111, "Connection refused"), "no connection to .*check the network connection", True),
        (ConnectionResetError(104, "reset"), "broke off its answer", True),
        (ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "is not trusted", False),
        (TypeError(f"unexpected argument {KEY}"), r"failed with TypeError \(unexpected argument \[key\]", False),
        (StatusError(401, {"error": "no"}), "ACME_KEY was refused .401. by https.*; set the right key: no", False),
        (StatusError(418, None), "the request was refused .418. for 'm-1'$", False),
        (page, "the provider failed .500. on 'm-1'$", True),
    ):  # fmt: skip
        found = failed(exc)
        assert found.retryable == retryable
        assert re.search(said, str(found)), found
        assert KEY not in str(found)


def test_what_a_provider_turns_away_for_good_is_told_from_what_is_wrong_with_all_calls():
    for status, said, refused in (
        (400, {"code": "content_filter", "message": "filtered"}, "content"), (404, {"message": "no such model"}, None),
        (400, {"type": "invalid_request_error", "message": "Content Exists Risk"}, "content"),
        (400, {"code": "invalid_prompt", "message": "flagged as potentially violating our usage policy"}, "content"),
        (403, {"message": "your input was flagged"}, "content"), (413, {"message": "too long"}, "call"),
        (400, {"message": "temperature must be 1"}, "call"), (403, {"message": "not allowed"}, None),
        (400, {"message": "Invalid schema for response_format"}, None), (429, {"message": "flagged"}, None),
        (400, {"code": "invalid_api_key", "message": "flagged"}, None),
        (500, {"message": "content filter failed"}, None),
    ):  # fmt: skip
        assert as_model_error(StatusError(status, {"error": said}), AT).refused == refused, said
    for body, words, message in (  # the words of an error are found in every form
        (None, set(), ""), ("plain", set(), "plain"), ({"error": "said so"}, set(), "said so"),
        ([{"error": {"status": "INVALID_ARGUMENT", "message": "no"}}], {"INVALID_ARGUMENT"}, "no"),
        ({"type": "error", "error": {"type": "billing_error", "message": "pay"}}, {"billing_error"}, "pay"),
        ({"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}, 7]}}, {"API_KEY_INVALID"}, ""),
        ({"message": "flat", "code": "x"}, {"x"}, "flat"),
    ):  # fmt: skip
        assert wire.words_of(body) == (words, message)


@given(st.binary(max_size=200))
@example(b'{"n": ' + b"7" * 100_000 + b"}")
def test_no_body_is_fatal_and_a_number_of_any_length_is_read(body):
    with suppress(ModelError):
        text, found = read_object(body, AT)
        assert isinstance(found, dict)
        assert isinstance(text, str)
        assert len(body) < 1000 or found["n"] == int("7" * 30)


def test_a_body_that_is_too_long_is_an_outcome_without_the_key(monkeypatch):
    monkeypatch.setattr(wire, "MOST_REPLY_BYTES", 1000)
    monkeypatch.setattr(wire, "MOST_KEPT_BYTES", 5000)
    key = KEY.encode()
    assert wire.too_large(key, call(), AT) is None
    whole = wire.too_large(b"<" + b"\xff" * 2000 + key + b">", call(), AT)
    assert whole.raw == "<" + "\ufffd" * 2000 + "[key]>"
    for before in range(4900, 5000):
        body = b"x" * before + key + b"y" * 1000
        cut = wire.too_large(body, call(), AT)
        assert set(cut.raw) <= set("x[key]"), before
        assert "more than 5,000 bytes" in cut.text


def test_keys_are_not_repeated_and_what_is_an_address_a_count_or_a_word_and_what_is_none():
    for said in (
        f"Incorrect API key provided: {KEY}", "Incorrect API key provided: sk-proj-ab***************************wxyz.",
        "key AIzaSyD-12345678901234567890 is not valid", "header was 'Authorization: Bearer abcdefgh'",
        "xai-abcdefgh is wrong",
    ):  # fmt: skip
        found = printable(said, [Secret(KEY)])
        assert "[key]" in found
        assert not any(part in found for part in (KEY, "wxyz", "SyD", "abcdefgh"))
    assert set(printable(f"{'k' * 119}9" * 40, [Secret(f"{'k' * 119}9")])) <= set("[key].")  # nor is a part of one
    assert printable("the risk-adjusted\n task-force \x1b[2J", []) == "the risk-adjusted task-force [2J"
    assert printable("x" * 1000, [], most=10) == "xxxxxxx..."
    assert KEY not in repr(AT)
    assert Secret(KEY) == Secret(KEY)
    assert len({Secret(KEY), Secret(KEY)}) == 1
    for url in (
        "https://api.openai.com/v1", "http://127.0.0.1:8000/v1", "http://[::1]:11434/v1",
        "https://host/openai/deployments/x",
    ):  # fmt: skip
        assert address_problem(url) is None, url
    for url in (
        "", "host", "ftp://h/", "https://", "https://h?key=s3cret", "https://u:s3cret@h/", "https://h/#s3cret", 7,
    ):  # fmt: skip
        found = address_problem(url)
        assert found.startswith("must be http://HOST:PORT/PATH"), url
        assert "s3cret" not in found
    assert [wire.count_of(value) for value in (None, True, -1, 1.5, "3", 10**13)] == [None] * 6
    assert [wire.word_of(value) for value in (None, "", 7, "two\nlines", "x" * 201)] == [None] * 5
    transports.refuse(call(), [])
    with pytest.raises(ModelError, match="acme/m-1: one; two"):
        transports.refuse(call(), ["one", "two"])


def closed(**properties):
    """A schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def test_a_strict_schema_is_sent_as_it_is_and_another_refused_with_its_problems():
    for schema in (
        closed(), closed(a={"type": ["string", "null"]}, b={"type": "array", "items": closed(c={"enum": [1, 2]})}),
        closed(a={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}),
        {**closed(a={"$ref": "#/$defs/x"}), "$defs": {"x": {"type": "string"}}},
        *(json.loads(rubric_form(load_rubric(name)).schema) for name in rubric_names()), agent_schema(),  # ours are
        json.loads(pairs.pair_form().schema),
    ):  # fmt: skip
        assert strict_schema(Text.of(json.dumps(schema, indent=1))) == schema
    for schema, problem in (
        ("{", "the schema is not JSON"), ("[]", "schema: must be an object"),
        ('{"type": "string"}', "the outermost type must be 'object'"), ("[" * 100_000, "the schema is not JSON"),
        (closed(a={"type": "string", "minLength": 1}), "schema.a: 'minLength' is not known to strict output"),
        ({**closed(), "additionalProperties": True}, "schema: additionalProperties must be false"),
        ({**closed(a={}), "required": []}, "schema: every property must be required"),
        (closed(a={"type": "array", "items": {"type": "object"}}), "schema.a.items: additionalProperties"),
        (closed(a={"anyOf": [{"oneOf": []}]}), r"schema.a.anyOf\[0\]: 'oneOf' is not known"),
        (closed(a=7), "schema.a: must be an object"), ({**closed(), "properties": 7}, "properties must be an object"),
        ({**closed(), "required": 7}, "required must be a list"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=problem) as caught:
            strict_schema(Text.of(schema if isinstance(schema, str) else json.dumps(schema)))
        assert not caught.value.retryable
