"""Results show themselves: escaped, without script or request, withheld claims without their sentence."""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
import threading
import time
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import AssayError, InputError, LedgerError, ModelError, PlanError, Problem, UnknownNameError
from assaymark.notebook import STYLE, Collapsed, Drawing, Grid, Heading, Quote, render_html, render_text
from assaymark.protocol import JudgeSpec, Study
from assaymark.records import Claim, Judgment, Measurement, Rows, Verdict, canonical_json, content_id, measurement_id
from assaymark.text import NBSP, bounds, clean, code_points, count, count_of, number, percent, prose, span, visible
from assaymark.text import undefined_reason as undefined
from assaymark.workflow import changed_fields

HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><svg onload=alert(1)>",
    "</div></details><iframe src=//evil>", "&lt;b&gt; &amp;", "\x1b[31mred\x1b[0m \u202egnp.exe \x00",
    "[bold]markup[/bold] [link=http://evil]x[/link]", "javascript:alert(1)",
)  # fmt: skip
ALLOWED = {"div", "style", "p", "span", "small", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


class Tags(HTMLParser):
    """Parses a text as a browser does: its elements, their attributes, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.said: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.said.append(data)


def measurement(**given) -> Measurement:
    base = {"name": "kappa", "labels": {"judge": "a"}, "value": -0.1234, "n": 45, "n_of": "records", "method": "mean"}
    return Measurement(**base | given)


def verdict(level="no-claim", kind="above", **given) -> Verdict:
    claim = Claim(
        id=f"{kind}[dimension=aggregate]", scope="pairwise-contrast", statement="cedar scores above birch.",
        subjects=("cedar", "birch"), dimension="aggregate", asserts_order=True,
    )  # fmt: skip
    base = {
        "claim": claim, "agreement_status": "publish", "stability_status": "judge-dependent",
        "adversarial_status": "passed", "publication_level": level, "reasons": ("cedar leads birch by 0.41.",),
        "binding": ("agreement", "stability"), "measurements": (), "plan_hash": "0", "condition": "Only so.",
    }  # fmt: skip
    return Verdict(**base | given)


def check(page: str, allowed: set[str] = ALLOWED) -> Tags:
    tags = Tags(page)
    assert tags.open == []
    assert {tag for tag, _ in tags.found} <= allowed
    names = {name for _, attributes in tags.found for name in attributes}
    assert names <= {"class", "scope", "role", "aria-label", "tabindex"}
    return tags


def claim(bad: str, statement: str) -> Claim:
    return Claim(id=bad, scope="benchmark", statement=statement, subjects=(bad,), dimension=bad, asserts_order=False)


@pytest.mark.parametrize("bad", HOSTILE)
def test_texts_from_records_are_text(bad):
    shown = (
        measurement(name=bad, labels={bad: bad}, method=bad, n_of=bad, unit=bad),
        measurement(value=None, state=bad),
        verdict("qualified", claim=claim(bad, bad), condition=bad, reasons=(bad,), fragility={bad: "headline"}),
        verdict(claim=claim(bad, "s")),
        Judgment(trajectory=bad, judge=bad, family=bad, rubric=bad, trial=1, status="invalid", scores={},
                 call_key="", reason=bad),
    )  # fmt: skip
    for item in (*shown, Rows(shown[:2]), Rows(shown[2:4])):
        check(item._repr_html_())
        assert not {"\x1b", "\x00", "\u202e"} & {*repr(item)}


@given(
    st.text(st.characters(exclude_categories=()), max_size=40),
    st.sampled_from(["headline", "qualified", "no-claim", '"><b>']),
)
def test_any_words_in_any_part_stay_words(words, level):
    parts = [Heading(words), words, Quote(level, words, words), Grid((words,), ((words,), (words,)))]
    page = render_html([*parts, Collapsed(words, tuple(parts))])
    page.encode()
    tags = check(page)
    assert len([1 for tag, _ in tags.found if tag == "details"]) == 1
    render_text(parts).encode()


def test_styles_stay_inside():
    assert "@" not in STYLE
    assert all(one.strip().startswith(".assay-shown") for one in re.findall(r"([^{}]+)\{", STYLE))
    assert "url(" not in STYLE


def test_a_withheld_claim_shows_neither_its_sentence_nor_its_reasons_nor_who_would_be_ahead():
    withheld = verdict()
    for shown in (withheld._repr_html_(), repr(withheld), Rows([withheld])._repr_html_(), repr(Rows([withheld]))):
        assert "not supported (above: birch, cedar; aggregate)" in " ".join(shown.split())
        assert [never for never in ("scores above", "0.41", "Only so") if never in shown] == []
    assert "cedar" not in repr(verdict(kind="cut"))
    assert "cedar" not in verdict(kind="season.cut")._repr_html_()
    assert "cedar" in repr(verdict(kind="season.above"))
    # Of first places none is set apart: the one whose stability differs would be the leader's.
    shown = {repr(Rows([verdict(kind="first", stability_status=one)])) for one in ("stable", "judge-dependent")}
    assert len(shown) == 1
    assert "judge-dependent" in repr(Rows([verdict()]))


def test_a_permitted_claim_comes_with_its_condition():
    for level in ("headline", "qualified"):
        shown = verdict(level)._repr_html_()
        assert f"assay-{level}" in shown
        for part in ("“cedar scores above birch.”", "Say also: Only so.", "cedar leads birch by 0.41."):
            assert part in shown
    assert repr(verdict("qualified")).startswith("◐ qualified: cedar scores above birch. Say also: Only so.")


def test_a_number_comes_with_what_it_takes_to_read_it():
    known = measurement(low=-0.2, high=0.05, level=0.95)
    assert repr(known) == ("kappa[judge=a]: −0.123 (−0.200 to 0.050, 95 %), n = 45 records; mean")
    assert repr(measurement()) == "kappa[judge=a]: −0.123 (no interval), n = 45 records; mean"
    unknown = measurement(value=None, state="undefined: one trial, needs two")
    for shown in (repr(unknown), unknown._repr_html_()):
        assert "not defined: one trial, needs two" in shown


def test_a_table_has_heads_and_says_once_what_all_rows_share():
    tags = check(Rows([measurement(), measurement(labels={})])._repr_html_())
    scopes = [attributes.get("scope") for tag, attributes in tags.found if tag == "th"]
    assert scopes == ["col"] * 5 + ["row"] * 2
    page = Rows([measurement(), measurement(n=3)])._repr_html_()
    assert page.count("mean") == page.count("Method: mean") == 1
    assert "Method: " not in Rows([measurement(), measurement(method="median")])._repr_html_()
    assert "Method: " not in Rows([measurement()])._repr_html_()


def test_rows_are_the_list_that_they_show():
    items = [measurement(n=n) for n in range(30)]
    rows = Rows(items)
    assert rows == items
    assert canonical_json(rows) == canonical_json(items)
    assert isinstance(rows[3:5], Rows)
    assert (rows[3:5], rows[3]) == (items[3:5], items[3])
    assert "20 of 30 rows" in rows._repr_html_()
    assert "rows[20:40]" in repr(rows)
    assert "of 10 rows" not in repr(rows[:10])
    shown = repr(Rows([measurement(name=name) for name in ("zinc", "alum")]))
    assert shown.index("zinc") < shown.index("alum")
    assert (repr(Rows([1, 2])), Rows([1, 2])._repr_html_(), repr(Rows())) == ("[1, 2]", None, "[]")
    assert "Nothing is in it." in Rows()._repr_html_()


@given(st.lists(st.tuples(st.text(max_size=60), st.text(max_size=300)), min_size=1, max_size=4))
def test_lines_fit(rows):
    assert all(len(line) <= 100 for line in render_text([Grid(("a", "b"), tuple(rows))]).splitlines())


def test_markup_has_no_effect_in_a_terminal_which_is_told_that_there_is_a_figure():
    assert render_text(["[bold]x[/bold]"]) == "[bold]x[/bold]"
    figure = Drawing("How far?", "Caption.", "<svg></svg>", "<svg></svg>", (".assay-fig .a{fill:red}",))
    assert render_text([figure]) == "[figure: How far?]"
    assert render_html([figure, Collapsed("more", (figure,))]).count(".assay-fig .a{fill:red}") == 1


# --- how numbers, texts and names are set -----------------------------------------------------------------------------


SET = [
    (clean("a\x1b[31mb\u202ec"), "a�[31mb[U+202E]c"),
    (clean("one  two\nthree", 8), "one two…"),
    (visible("95\u00a0% \x1b[31m"), "95\u00a0% \ufffd[31m"),
    (code_points("buy\u200b \u202egold"), "buy[U+200B] [U+202E]gold"),
    (prose("X ranks first of the one agents on the panel's score."),
     "X ranks first of the one agent on the panel’s score."),
    (prose("4 records in 1 clusters"), "4 records in 1 cluster"),
    (prose("no lead over 3 of the 3 agents"), "no lead over all 3 agents"),
    (prose("21 clusters, 0.1 points"), "21 clusters, 0.1 points"),
    (prose("quote 'this'"), "quote 'this’"),
    ([number(-0.231), number(0.7168), number(-0.001)], ["−0.23", "0.72", "0.00"]),
    (count(14500), "14,500"),
    (count_of(1250, "trajectories"), "1,250 trajectories"),
    (count_of(1, "trajectories"), "1 trajectory"),
    (count_of(1, "agents of its family"), "1 agent of its family"),
    (count_of(1, "guesses"), "1 guess"),
    (count_of(1, "agents' periods"), "1 agents' period"),
    (count_of(0, ""), "0"),
    ([percent(one).replace(NBSP, " ") for one in (0.84, 0.0004, 0.9999, 0.0, 1.0)],
     ["84 %", "< 1 %", "> 99 %", "0 %", "100 %"]),
    (percent(0.006, 1).replace(NBSP, " "), "0.6 %"),
    (span(3.891, 4.09), "3.89 to 4.09"),
    ([undefined("undefined: one trial"), undefined("ok")], ["not defined: one trial", "not measured"]),
    (bounds(0.055, 0.2381, 0.95).replace(NBSP, " "), "0.055 to 0.238, 95 %"),
    (bounds(None, None, None), "no interval"),
    (canonical_json({"b": (1, 2.0), "a": "é"}), '{"a":"é","b":[1,2.0]}'),
    (content_id({"a": 1})[:12], "015abd7f5cc5"),
    (measurement_id("kappa.mean_pairwise", {"dimension": "aggregate"}), "kappa.mean_pairwise[dimension=aggregate]"),
    (str(Problem("line 3, weight", "must be below 1 (got 1.4)")), "line 3, weight: must be below 1 (got 1.4)"),
    (str(InputError("study.toml", [Problem("judges", "at least one")])), "study.toml: judges: at least one"),
    (str(UnknownNameError("judge", "audtor", ["auditor", "reader"])),
     "unknown judge 'audtor'. Did you mean 'auditor'? Known: auditor, reader"),
    (render_text([Heading("What is supported"), Quote("qualified", "A leads.", "B is close.")]),
     "What is supported\n◐ “A leads.” Say also: B is close."),
]  # fmt: skip


def test_it_is_set_as_it_is_read():
    assert [made for made, _ in SET] == [wanted for _, wanted in SET]


def test_parts_of_html_an_error_of_a_model_and_changed_fields():
    assert render_html(["a <b>"]).endswith('<p class="assay-note">a &lt;b&gt;</p></div>')
    busy = ModelError("rate limited (429)", retryable=True, retry_after=2.0)
    assert (busy.retryable, busy.retry_after, busy.quota) == (True, 2.0, False)
    study = Study(name="s", seed=1, judges=(JudgeSpec(name="j", model="reference/j", family="f"),))
    assert changed_fields(study, study.model_copy(update={"seed": 2})) == {"seed": {"from": 1, "to": 2}}


def test_problems_of_a_file_are_listed_the_first_of_very_many_and_the_rest_counted():
    error = InputError("a.csv", [Problem("line 3", "is empty"), "has no header"])
    assert str(error).splitlines() == ["a.csv: 2 problems", "  line 3: is empty", "  has no header"]
    assert error.problems[1] == Problem("", "has no header")
    error = InputError("fr.toml", [Problem(f"key {n}", "is missing") for n in range(1137)])
    listed = [f"  key {n}: is missing" for n in range(20)]
    assert str(error).splitlines() == ["fr.toml: 1137 problems", *listed, "  and 1117 more"]
    assert len(error.problems) == 1137
    assert len(str(InputError("fr.toml", ["is missing"] * 20)).splitlines()) == 21
    error = InputError("log.csv", ["is empty"], more=2)  # problems that nobody kept
    assert str(error).splitlines() == ["log.csv: 3 problems", "  is empty", "  and 2 more"]
    assert "Did you mean" not in str(UnknownNameError("model", "zzz", ["reference/auditor"]))
    assert str(UnknownNameError("model", "zzz", [])).endswith("Known: none")
    assert all(
        issubclass(one, AssayError) for one in (InputError, PlanError, UnknownNameError, LedgerError, ModelError)
    )


# --- in a kernel, as Jupyter runs it ----------------------------------------------------------------------------------


DOCS = Path(__file__).resolve().parents[1] / "docs"
WHY = "needs nbclient and ipykernel to run a notebook (extra: test)"

ASKING = '''
import asyncio, pathlib
from assaymark.engine import CallSpec, Ledger, Message, Reply, Text, run_calls

class Slow:
    """Answers after a moment, and says in a file that it was asked."""
    async def complete(self, call):
        with open("asked.txt", "a") as file:
            print(call.key, file=file)
        await asyncio.sleep(0.3)
        return Reply(text="fine", model="slow-1")

def call(n):
    return CallSpec(model="a/slow", messages=(Message("user", (Text.of(str(n)),)),), template="")

calls = [call(n) for n in range(40)]

def ask():
    with Ledger.open(pathlib.Path("ledger.db")) as ledger:
        made = run_calls(ledger, calls, {"a/slow": Slow()}, concurrency=2)
        return made.interrupted, made.made, len(ledger.orphaned()), made.left
'''


def test_the_notebook_is_as_generated() -> None:
    """By ``docs/notebook.py``, which is no part of the package."""
    made = runpy.run_path(str(DOCS / "notebook.py"))
    assert made["NOTEBOOK"].read_text(encoding="utf-8") == made["notebook"](made["SOURCE"].read_text(encoding="utf-8"))


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Any]:
    """A client of a kernel that works in an empty folder."""
    nbclient = pytest.importorskip("nbclient", reason=WHY)
    pytest.importorskip("ipykernel", reason=WHY)
    nbformat = pytest.importorskip("nbformat", reason=WHY)
    made = nbclient.NotebookClient(
        nbformat.v4.new_notebook(), timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    with made.setup_kernel():
        yield made


def run(kernel: Any, code: str) -> list[dict[str, Any]]:
    import nbformat

    kernel.nb.cells.append(nbformat.v4.new_code_cell(code))
    cell = kernel.execute_cell(kernel.nb.cells[-1], len(kernel.nb.cells) - 1)
    return list(cell.outputs)


def said(output: dict[str, Any]) -> str:
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "".join(text)


def agrees(stored: str, made: str) -> bool:
    """True if two texts are the same except for line breaks; three dots stand for anything, as on the page."""
    parts = [re.escape("".join(part.split())) for part in stored.split("...")]
    return re.fullmatch(".*".join(parts), "".join(made.split())) is not None


def joined(outputs: Iterable[Any]) -> list[Any]:
    """Outputs with what was printed in one piece: a kernel sends it in as many as it likes."""
    made: list[Any] = []
    for output in outputs:
        if made and output.output_type == made[-1].output_type == "stream" and output.name == made[-1].name:
            made[-1].text += output.text
        else:
            made.append(output)
    return made


def test_the_tutorial_shows_in_a_kernel_what_its_page_shows(kernel: Any, tmp_path: Path) -> None:
    import nbformat

    cells = [cell for cell in nbformat.read(DOCS / "tutorial.ipynb", as_version=4).cells if cell.cell_type == "code"]
    figures = 0
    for cell in cells:
        kernel.nb.cells.append(nbformat.from_dict(cell | {"outputs": []}))
        made = joined(kernel.execute_cell(kernel.nb.cells[-1], len(kernel.nb.cells) - 1).outputs)
        assert len(made) == len(cell.outputs), cell.source
        for stored, output in zip(cell.outputs, made, strict=True):
            assert stored.output_type == output.output_type, cell.source
            assert agrees(said(stored), said(output)), cell.source
            figures += "<svg" in output.get("data", {}).get("text/html", "")
    assert figures == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_drains_and_the_cell_goes_on_when_it_is_run_again(kernel: Any, tmp_path: Path) -> None:
    run(kernel, ASKING)
    asked = tmp_path / "asked.txt"

    def interrupt() -> None:
        while not asked.exists():
            time.sleep(0.01)
        asyncio.run(kernel.km.interrupt_kernel())

    pressing = threading.Thread(target=interrupt)
    pressing.start()
    output = run(kernel, "ask()")[-1]
    pressing.join()
    interrupted, made, orphaned, left = ast.literal_eval(said(output))
    assert (interrupted, orphaned, made + left) == (True, 0, 40)
    assert made == len(asked.read_text().splitlines()) < 40
    asked.unlink()
    again = run(kernel, f"calls = calls[: {made} + 2]; ask()")[-1]
    assert ast.literal_eval(said(again)) == (False, 2, 0, 0)
    assert len(asked.read_text().splitlines()) == 2
