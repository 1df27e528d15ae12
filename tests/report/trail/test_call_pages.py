"""Pages of calls: each call and text once, every link good, every text to be read back, whatever a model wrote."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outline import raw_texts, read

from assaymark.engine import CallSpec, Message, Reply, Text
from assaymark.records import Judgment
from assaymark.report import Frame, Linked
from assaymark.report import records as record_pages

FRAME = Frame(study="s", mark="", nav=())
HOSTILE = "</pre><script>document.title='got in'</script>\r\n\x1b[0m\u202e"


def asked(texts, *, trial=1, reply="fine", seen=frozenset(), **more) -> record_pages.AskedCall:
    parts = tuple(Text.of(text) for text in texts)
    call = CallSpec(model="reference/auditor", messages=(Message("user", parts),), template="", trial=trial)
    new = tuple(part for part in dict.fromkeys(parts) if part.text not in seen)
    return record_pages.AskedCall(key=call.key, call=call, new=new, reply=Reply(text=reply, model="auditor-1"), **more)


def many(count: int, size: int) -> list[record_pages.AskedCall]:
    """Calls that all show the one text, each with one of its own."""
    first = asked(["shared", "own 0"], reply="0" * size)
    return [first, *(asked(["shared", f"own {at}"], trial=at, reply=f"{at}" * size, seen={"shared"})
                     for at in range(1, count))]  # fmt: skip


def made(calls, uses=None) -> tuple[dict[str, str], dict[str, str]]:
    places: dict[str, str] = {}
    pages = list(record_pages.call_pages(calls, uses or {}, FRAME, places))
    assert len(dict(pages)) == len(pages)
    return dict(pages), places


def test_a_reply_and_what_it_was_asked_can_be_read_back():
    call = asked(["shared", HOSTILE], reply=f"\n{HOSTILE}")
    call = replace(call, reply=replace(call.reply, raw='{"body": "<b>"}'))
    pages, places = made([call])
    page, _, anchor = places[call.key].partition("#")
    shown = raw_texts(pages[page])
    assert shown[f"{anchor} asked"] == ["shared", HOSTILE]
    assert shown[anchor] == [f"\n{HOSTILE}", '{"body": "<b>"}']
    whole = raw_texts(pages["calls/texts-001.html"]).values()
    assert [text for found in whole for text in found] == ["shared", HOSTILE]


def test_nothing_from_a_call_is_markup():
    call = asked([HOSTILE], reply=HOSTILE)
    hostile = replace(call.call, model=HOSTILE, args={HOSTILE: HOSTILE})
    reply = Reply(text=HOSTILE, model=HOSTILE, fingerprint=HOSTILE, raw=HOSTILE)
    call = replace(call, key=hostile.key, call=hostile, reply=reply)
    pages, _ = made([call], {call.key: [Linked(HOSTILE, "judgments/index.html")]})
    for page in pages.values():
        assert read(page).tags.count("script") == 1


def test_every_call_and_every_text_stands_once_and_links_lead_there():
    calls = many(400, 3000)
    pages, places = made(calls)
    assert made(calls) == (pages, places), "equal calls make equal bytes"
    outlines = {path: read(page) for path, page in pages.items()}
    ids = {path: outline.ids for path, outline in outlines.items()}
    anchors = [name for path, found in ids.items() for name in found if name[0] in "ct" and len(name) == 17]
    assert len(anchors) == len(set(anchors)) == 400 + 401
    assert all(place.partition("#")[2] in ids[place.partition("#")[0]] for place in places.values())
    for outline in outlines.values():
        for link in outline.links:
            path, _, anchor = link.partition("#")
            if path and not path.startswith("../"):
                assert anchor == "" or anchor in ids[f"calls/{path}"]


def test_pages_are_small_whatever_the_length_of_replies():
    pages, _ = made([*many(30, 50_000), asked(["x" * 3_000_000], reply="\x00" * 900_000, trial=99)])
    assert len(pages) > 5
    assert max(len(page.encode()) for page in pages.values()) < record_pages.PAGE + 30_000
    cut, none = (made([one])[0]["calls/page-001.html"] for one in (
        asked(["a"], reply="x" * 900_000), replace(asked(["a"]), reply=None),
    ))  # fmt: skip
    assert "characters are left out here" in cut
    assert "assaymark serve" in cut
    assert "There is no reply." in none


def test_a_call_is_a_conversation_with_the_ways_to_its_neighbours_and_up():
    reply = '{"scores": {"care": 4}, "comment": "fine"}'
    calls = [asked([f"first {'x' * 1900} last"], trial=at, reply=reply) for at in (1, 2, 3)]
    calls[1:] = [replace(one, new=()) for one in calls[1:]]
    uses = {one.key: [Linked("auditor on d1", "judgments/auditor.html#j1")] for one in calls}
    pages, places = made(calls, uses)
    page = pages["calls/page-001.html"]
    first, second, third = (page.partition(f'id="c{one.key[:16]}"')[2].partition("</section>")[0] for one in calls)
    assert 'rel="next" href="#' in first
    assert 'rel="prev"' not in first
    anchors = [place.partition("#")[2] for place in places.values()]
    for part, ways in ((first, {0, 1}), (second, {0, 1, 2}), (third, {1, 2})):  # its own is that of its heading
        assert {at for at, anchor in enumerate(anchors) if f'href="#{anchor}"' in part} == ways
        crumbs = part.partition("Up: ")[2].partition("</p>")[0]
        assert re.sub("<[^>]*>", "", crumbs) == "sentences / measurements / judgments / auditor on d1"
        assert '<a href="../judgments/auditor.html#j1">auditor on d1</a>' in crumbs
        assert part.index("first xxx") < part.index("last</pre>") < part.index("whole text, 1,911 characters")
        places_of = map(part.index, ("whole text", '{"scores"', "<dt>scores: care</dt><dd>4</dd>"))
        assert sorted(found := [*places_of]) == found


def judged(
    judge: str, care: float, call: record_pages.AskedCall, *quotes: str, rubric: str = "r"
) -> record_pages.JudgeCall:
    given = Judgment(
        trajectory="d1", judge=judge, family=judge, rubric=rubric, trial=1, status="ok", scores={"care": care},
        call_key=call.key, evidence=quotes, lookahead_check="unsure",
    )  # fmt: skip
    return record_pages.JudgeCall(call.key, Linked(judge, f"judgments/{judge}.html#j1"), given)


def test_a_reply_stands_beside_the_other_replies_on_the_same_answer():
    own, other, far = (asked(["Revenue is < 2, and lt & amp."], trial=at) for at in (1, 2, 3))
    texts = [own, *(replace(one, new=()) for one in (other, far))]
    found = [judged("auditor", 4.0, own, "< 2", "lt", "amp", "b", HOSTILE), judged("reader", 5.0, other),
             judged("outsider", 1.0, far, rubric="s")]  # fmt: skip
    places: dict[str, str] = {}
    asked_of = {f"c{own.key[:16]}": found}
    (_, _), (_, page) = record_pages.call_pages(
        texts, {}, FRAME, places, answers=record_pages.SameAnswers(asked_of, [("care", "Care")], (1.0, 5.0))
    )
    part = page.partition(f'id="c{own.key[:16]}"')[2].partition("</section>")[0]
    assert 'aria-label="reader 5"' in part  # what another rubric gave is no ring
    assert '<i></i><i></i><i></i><i class="s"></i><i class="o"></i>' in part
    assert "Revenue is <mark>&lt; 2</mark>, and <mark>lt</mark> &amp; <mark>amp</mark>." in part
    assert f'<a href="#c{other.key[:16]}">reader</a>' in part
    assert read(page).tags.count("script") == 1
    half = record_pages.SameAnswers({}, [], (0.0, 100.0)).strip("care", found[1:2], 40.0)
    assert "<small>reader 5</small>" in half


@pytest.mark.parametrize(("usd", "batch", "words"), [(0.25, True, "0.25 USD, in a batch"), (0.25, False, "0.25 USD")])
def test_the_price_is_shown_where_one_is_known(usd, batch, words):
    pages, _ = made([asked(["a"], usd=usd, in_batch=batch, attempts=2)])
    page = pages["calls/page-001.html"]
    assert f"<dd>{words}</dd>" in page
    assert "<dt>Attempts</dt><dd>2</dd>" in page


def test_pages_come_while_calls_are_read():
    read_so_far = []

    def calls():
        for one in many(300, 3000):
            read_so_far.append(one.key)
            yield one

    pages = record_pages.call_pages(calls(), {}, FRAME, {})
    next(pages)
    assert len(read_so_far) < 300


# --- texts: the last character can be read back, and nothing of them is markup ---------------------------------------

ANY = st.text(st.one_of(st.characters(), st.sampled_from("\r\n\t\x00\x1b<>&\"'\u202e\u200b\ud800\ufeff")))


def on_a_page(markup: str) -> str:
    return f'<section class="call" id="x"><pre class="raw">\n{markup}</pre></section>'


@given(ANY)
def test_a_text_can_be_read_back_to_the_last_character(text):
    assert raw_texts(on_a_page(record_pages.reveal(text))) == {"x": [text]}


@given(ANY)
def test_nothing_of_a_text_is_markup_or_unseen(text):
    shown = re.sub(r'<i class="u">U\+[0-9A-F]{4,6}</i>', "", record_pages.reveal(text))
    assert not set("<>") & set(shown)
    assert all(char.isprintable() or char in "\n\t" or char.isspace() for char in shown)
    assert "\r" not in shown


def test_a_text_that_looks_like_a_mark_of_ours_is_not_taken_for_one():
    text = '<i class="u">U+0041</i>'
    assert raw_texts(on_a_page(record_pages.reveal(text))) == {"x": [text]}


@pytest.mark.parametrize("text", ["x" * 3000, "\x00" * 3000, "&" * 3000, "中" * 3000, "😀" * 3000])
def test_a_long_text_is_cut_in_its_middle_and_says_by_how_much(text):
    found, left_out = record_pages.fit_markup(text, 1000)
    kept = re.split(r"<b class=\"cut\">\[[\d,]+ characters are left out here\]</b>", found)
    head, tail = (raw_texts(on_a_page(part))["x"][0] for part in kept)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert 0 < len(tail) < len(head)
    assert left_out == len(text) - len(head) - len(tail)
    assert len(found.encode()) < 1000 + 100


def test_a_long_text_is_cut_between_words():
    text = " ".join(f"word{number:03}" for number in range(400))
    found, _ = record_pages.fit_markup(text, 1000)
    head, tail = re.split(r"<b .*?</b>", found)
    assert head.split()[-1] in text.split()
    assert tail.split()[0] in text.split()


@given(ANY, st.integers(0, 60))
def test_only_a_text_above_the_limit_is_cut(text, limit):
    _, left_out = record_pages.fit_markup(text, limit)
    assert (left_out == 0) == (len(record_pages.reveal(text).encode()) <= limit or not text)
