"""The client `huggingface_hub`, unchanged, against its service's wire format on loopback: dataset card, HEAD, GET."""

from __future__ import annotations

import hashlib
import json
import traceback
from datetime import date

import huggingface_hub
import numpy as np
import pytest
from loopback import BROKEN, PAGE, STORM, Reply, serving

from assaymark.errors import InputError
from assaymark.market import sources

REPO, COMMIT, TOKEN = "lab/PortBench", "a" * 40, "hf_canary0123456789"
FILE, QA = "PortBench-Market.csv", "PortBench-QA.jsonl"
QUESTIONS = b"".join(
    json.dumps({"id": place, "question": "which?", "answer": "A"}).encode() + b"\n" for place in range(5)
)


def market() -> bytes:
    """A small table of PortBench's shape: calendar days, columns by class and ticker, log returns beside prices."""
    names = ["equities_AAA", "bonds_BBB", "cryptocurrency_CCC"]
    fields = ["open", "high", "low", "close", "volume", "return"]
    lines = ["date," + ",".join(f"{name}_{one}" for name in names for one in fields)]
    for place, day in enumerate(np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-02-10"))):
        closes = [100.0 + place, 50.0 + 0.1 * place, 9.0 + 0.5 * place]
        cells = [
            f"{one - 0.1:.2f},{one + 0.2:.2f},{one - 0.2:.2f},{one:.2f},1000,{np.log1p(0.01):.6f}" for one in closes
        ]
        lines.append(f"{day}," + ",".join(cells))
    return ("\n".join(lines) + "\n").encode()


def service(files: dict[str, bytes] | None = None, *, private: bool = False, sizes: dict[str, int] | None = None):
    """The service with one dataset."""
    files = {FILE: market(), QA: QUESTIONS, "README.md": b"# card"} if files is None else files
    siblings = [
        {"rfilename": name, "size": (sizes or {}).get(name, len(data)), "blobId": "b" * 40}
        for name, data in files.items()
    ]
    card = {"id": REPO, "sha": COMMIT, "private": False, "gated": False, "disabled": False, "downloads": 0, "likes": 0,
            "tags": ["license:cc-by-4.0", "finance"], "siblings": siblings}  # fmt: skip

    def answer(path: str, query: dict[str, str]) -> Reply:
        if path == f"/api/datasets/{REPO}" and not private:
            return Reply.json(card)
        resolve = f"/datasets/{REPO}/resolve/{COMMIT}/"
        if path.startswith(resolve) and (data := files.get(path.removeprefix(resolve))) is not None:
            etag = hashlib.sha256(data).hexdigest()
            return Reply(data, headers={"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}, kind="text/plain")
        return Reply.json({"error": "Repository not found"}, 401 if private else 404, X_Error_Code="RepoNotFound")

    return serving(answer)


def asked(url: str, **options: str) -> sources.Request:
    return sources.Request(options={"endpoint": url, "repo": REPO, **options})


def refused(request, now, manners) -> str:
    with pytest.raises(InputError, match="source huggingface") as caught:
        sources.pull("huggingface", request, now=now, manners=manners)
    return str(caught.value)


def test_the_market_table_says_its_traps_and_uses_no_return(now, manners):
    with service() as there:
        found = sources.pull("huggingface", asked(there.url, currency="USD"), now=now, manners=manners)
    bars = found.tables["bars"].to_pylist()
    assert {one["instrument"] for one in bars} == {"AAA", "BBB", "CCC"}
    assert all(one["event_date"].weekday() < 5 for one in bars)
    assert bars[0]["close"] == 100.0
    assert not any("return" in one["instrument"] for one in bars)
    assert any("winsorised over the whole sample" in note for note in found.origin.notes)
    assert any("log returns" in note for note in found.origin.notes)
    assert f"commit {COMMIT}" in found.origin.notes
    assert "the dataset's card states the licence: cc-by-4.0" in found.origin.notes
    assert found.id.startswith("huggingface-2024-03-08-")
    assert {(one["snapshot"], one["source"]) for one in bars} == {(found.id, f"huggingface {REPO}")}
    # The commit that the service named is the one that is fetched, not a branch that may move.
    assert all(COMMIT in path for path in there.paths("resolve"))


def test_days_and_instruments_can_be_chosen(now, manners):
    with service() as there:
        request = sources.Request(symbols=("BBB",), start=date(2024, 2, 1), options=asked(there.url).options)
        bars = sources.pull("huggingface", request, now=now, manners=manners).tables["bars"]
    assert bars["instrument"].unique().to_pylist() == ["BBB"]
    assert bars["event_date"].to_pylist()[0] == date(2024, 2, 1)


def test_questions_are_laid_down_with_where_they_are_from(tmp_path, now, manners):
    with service() as there:
        found = sources.pull_questions(asked(there.url, token=TOKEN), tmp_path, now=now, manners=manners)
    assert found.path.read_bytes() == QUESTIONS
    assert (found.items, found.sha256) == (5, hashlib.sha256(QUESTIONS).hexdigest())
    said = json.loads(found.provenance.read_text())
    assert (said["items"], said["commit"], said["sha256"]) == (5, COMMIT, found.sha256)
    assert any("PortBench states 6,269" in note for note in said["notes"])
    assert TOKEN not in found.provenance.read_text() + repr(found)
    assert sorted(one.name for one in tmp_path.iterdir()) == [QA, f"{QA}.provenance.json"]


def test_questions_never_replace_other_ones(tmp_path, now, manners):
    (tmp_path / QA).write_bytes(b"mine")
    with service() as there, pytest.raises(InputError, match="is another file already"):
        sources.pull_questions(asked(there.url), tmp_path, now=now, manners=manners)
    assert (tmp_path / QA).read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"id": 1}\n[]\n{"id": 1, "id": 2}\nNaN\n\xff\n', "line 2: is no JSON object"),
        (b'{"id": 1}\n{"id"', "line 2: is not one JSON object"),
        (b"\n\n", "holds no question"),
        (PAGE.body, "the answer is an HTML page, not data"),
    ],
    ids=["several", "cut", "empty", "page"],
)
def test_a_file_that_holds_no_questions_leaves_nothing(data, said, tmp_path, now, manners):
    with service({QA: data}) as there, pytest.raises(InputError, match="source huggingface") as caught:
        sources.pull_questions(asked(there.url), tmp_path, now=now, manners=manners)
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "known", "said"),
    [
        (
            {"repo": "lab/other"}, {},
            "lab/other: is no dataset of the service, or not a public one; a token may be needed",
        ),
        ({"repo": ""}, {}, "option repo: is needed"), ({"repo": "../.."}, {}, "the reply cannot be read"),
        ({"file": "nope.csv"}, {}, f"'nope.csv' is not in the dataset; files that fit: {FILE}"),
        ({}, {"files": {"a.csv": b"", "b.csv": b""}}, "has 2 files that end in .csv or .parquet: a.csv, b.csv"),
        ({}, {"files": {}}, "has 0 files that end in"),
        ({}, {"files": {"../../out.csv": b"date,A\n"}}, "the reply cannot be read (ValueError"),
        ({}, {"sizes": {FILE: 3_000_000_000}}, "the answer is larger than 2,000,000 bytes"),
        ({}, {"files": {FILE: PAGE.body}}, "the answer is an HTML page, not data"),
        ({}, {"files": {FILE: b"x" * 2_000_001}, "sizes": {FILE: 7}}, "the answer is larger than 2,000,000 bytes"),
        ({"token": TOKEN}, {"private": True}, "or the token is refused"),
    ],
    ids=[
        "unknown", "no repo", "bad repo", "no file", "several", "none", "outside", "too large", "page", "liar", "token",
    ],
)  # fmt: skip
def test_wrong_requests_and_answers_are_named(options, known, said, now, manners):
    with service(**known) as there:
        assert said in refused(asked(there.url, **options), now, manners)


@pytest.mark.parametrize("at", ["/api/", "/resolve/"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (STORM, "too many requests (status 429); given up after 3 attempts"),
        (BROKEN, "the service is not available (status 500); given up after 3 attempts"),
        (Reply(b'{"id"', cut=True, headers={"ETag": '"x"', "X-Repo-Commit": COMMIT}), "given up after 3 attempts"),
    ],
    ids=["storm", "broken", "cut"],
)
def test_a_service_that_does_not_answer_is_given_up_with_one_line(at, fault, said, now, manners):
    with service() as there:
        there.at, there.faults = at, [fault] * 50
        message = refused(asked(there.url, token=TOKEN), now, manners)
    assert said in message
    assert "\n" not in message
    assert TOKEN not in message


@pytest.mark.parametrize(("at", "status", "code", "said"), [
    ("/api/", 403, "GatedRepo", f"{REPO}: asks for consent on its own page first; then pass a token"),
    ("/api/", 404, "RevisionNotFound", f"option revision: is no revision of {REPO}"),
    ("/resolve/", 404, "EntryNotFound", f"option file: is not in {REPO} any more"),
    ("/api/", 403, "", "the token is refused (status 403"),
    ("/api/", 418, "", "the service refuses (status 418"),
])  # fmt: skip
def test_refusals_are_told_apart(at, status, code, said, now, manners):
    with service() as there:
        there.at, there.faults = at, [Reply.json({"error": "no"}, status, X_Error_Code=code)] * 9
        assert said in refused(asked(there.url), now, manners)


def test_no_token_is_in_a_traceback(now, manners):
    with service(private=True) as there, pytest.raises(InputError, match="the token is refused") as caught:
        sources.pull("huggingface", asked(there.url, token=TOKEN), now=now, manners=manners)
    shown = traceback.TracebackException(
        InputError, caught.value, caught.value.__traceback__.tb_next, capture_locals=True
    )
    assert TOKEN not in "".join(shown.format(chain=True))


def test_the_client_is_left_as_it_was(now, manners):
    factory = huggingface_hub.utils._http._GLOBAL_CLIENT_FACTORY
    with service() as there:
        sources.pull("huggingface", asked(there.url), now=now, manners=manners)
    assert huggingface_hub.utils._http._GLOBAL_CLIENT_FACTORY is factory
    assert "send" not in vars(huggingface_hub.utils.get_session())
    assert huggingface_hub.constants.HF_HUB_DISABLE_XET is False
