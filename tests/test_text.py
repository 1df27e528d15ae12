"""How numbers, texts and names are set wherever a person reads them."""

from __future__ import annotations

from assaymark.encoding import canonical_json, content_id
from assaymark.errors import AssayError, InputError, LedgerError, ModelError, PlanError, Problem, UnknownNameError
from assaymark.notebook import Heading, Note, Said, html, text
from assaymark.protocol import JudgeSpec, Study
from assaymark.records import measurement_id
from assaymark.text import NBSP, bounds, clean, code_points, count, count_of, number, percent, prose, span, visible
from assaymark.text import why_undefined as undefined
from assaymark.workflow import changed_fields

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
    (text([Heading("What is supported"), Said("qualified", "A leads.", "B is close.")]),
     "What is supported\n◐ “A leads.” Say also: B is close."),
]  # fmt: skip


def test_it_is_set_as_it_is_read():
    assert [made for made, _ in SET] == [wanted for _, wanted in SET]


def test_parts_of_html_an_error_of_a_model_and_changed_fields():
    assert html([Note("a <b>")]).endswith('<p class="assay-note">a &lt;b&gt;</p></div>')
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
