"""The plan, the panel, the records and the cost: what each locked value says, what is lacking, what is known."""

from __future__ import annotations

from dataclasses import replace

import assay_runs as runs
import pytest
from page_words import pages
from read_blocks import blocks_of, facts, rows, tables, words

from assaymark.protocol import Claims, Contamination, DatasheetLimits, Inference
from assaymark.records import Rationale
from assaymark.report import Items, PaidView, RunIndex, money, render_pages
from assaymark.report import study as study_pages


@pytest.mark.parametrize(("share", "dimensions", "said"), [
    (0.8, None, "α .04 for the overall score, .01 for dimensions"),
    (0.5, None, "α .025 for the overall score, .025 for dimensions"),
    (0.8, ("aggregate",), "where dimensions are claimed, too"),
])  # fmt: skip
def test_the_plan_says_at_which_level_orders_are_tested(share, dimensions, said):
    run = runs.realistic()
    more = {"inference": Inference(aggregate_share=share), "claims": Claims(dimensions=dimensions)}
    plan = run.study.model_copy(update=more)
    kept = tuple(v for v in run.verdicts if dimensions is None or v.claim.dimension in dimensions)
    found = study_pages.plan_section(RunIndex.of(replace(run, study=plan, verdicts=kept)))
    meanings = {row[0]: row[2] for row in rows(tables(found)["Field"])}
    assert meanings["inference.aggregate_share"].endswith(said)
    assert meanings["inference.alpha"].startswith("error rate of all ranking claims together")


def test_every_locked_value_says_what_it_decides():
    run = runs.realistic()
    more = {"datasheets": DatasheetLimits(verbosity=0.15), "contamination": Contamination(post_cutoff=("regime 4",))}
    for study in (run.study, run.study.model_copy(update=more)):
        found = {
            row[0]: row
            for row in rows(tables(study_pages.plan_section(RunIndex.of(replace(run, study=study))))["Field"])
        }
        assert [name for name, *_, meaning in found.values() if not meaning] == []
    new = {"inference.test", "inference.margin", "inference.cluster_order", "claims.within", "claims.length"}
    new |= {"claims.distinct", "claims.judges", "missing.per_judge", "human.pass", "datasheets.verbosity"}
    assert new <= set(found)
    assert not {"inference.gating_test", "inference.share_alpha", "claims.rankings"} & set(found)


def test_records_without_a_judged_text_are_counted():
    run = runs.minimal()
    silent = [
        replace(run.decisions[0], rationales=(), missing=("text",)),
        replace(run.decisions[1], rationales=(Rationale(text="Fees: none.", kind="arena"),)),
    ]

    def missing(decisions, notes=()):
        section = study_pages.records_section(RunIndex.of(replace(run, decisions=tuple(decisions), import_notes=notes)))
        return tuple(line for one in blocks_of(section) if isinstance(one, Items) for line in one.items)

    assert missing(run.decisions) == ()
    assert missing([silent[0], run.decisions[1]]) == ("One of two records holds no text that is judged.",)
    assert missing(silent) == ("Two of two records hold no text that is judged.",)
    both = ("Two of two records hold no text that is judged.", "Fees (2 records).")
    assert missing(silent, ("text (1 records)", "fees (2 records)")) == both
    assert missing(run.decisions, ("text of a note (1 records)",)) == ("Text of a note (1 record).",)


def test_what_is_undefined_for_one_reason_is_one_row():
    run = runs.realistic()
    some = runs.measured("noise.repetition_stability", {"judge": "north-1", "ddof": "0"}, 0.97)
    found = study_pages.noise_section(RunIndex.of(replace(run, measurements=(*run.measurements, some))))
    assert [row[:2] for row in rows(tables(found)["About"])[:3]] == [
        ("north-1, repeated (ddof 0)", "0.970"),
        ("north-1, quay-1 and strand-1, repeated (ddof 1)", "not defined: one trial, needs two"),
        ("Badger, Marten, Otter, Stoat and Weasel, replicates", "not defined: no replicates"),
    ]


def test_only_a_panel_with_built_in_judges_has_a_notice_which_names_them():
    models, mixed = (RunIndex.of(replace(runs.realistic(), reference_panel=runs.PANEL[:n])) for n in (0, 2))
    assert study_pages.built_in_judges(models) == ""
    assert "planted" not in words(study_pages.panel_section(models))
    assert study_pages.built_in_judges(mixed).startswith("north-1 and strand-1 are built-in graders")


def test_a_plan_without_measurements_says_what_is_missing():
    run = runs.realistic()
    bare = replace(run, measurements=(), calls=0)
    found = facts(study_pages.plan_section(RunIndex.of(bare)))
    assert found["Claims"].endswith(" no difference was tested")
    assert found["Could detect"] == "not measured"
    assert found["Test"] == "moderated cluster t clusters not stated"
    assert found["Replies"].startswith("0 calls, 42 invalid ")
    assert rows(tables(study_pages.panel_section(RunIndex.of(bare)))["Judge"])[0][4] == "14"
    elsewhere = replace(run, decisions=tuple(runs.decisions({"Marten": "elsewhere"}, 4)))
    assert facts(study_pages.plan_section(RunIndex.of(elsewhere)))["Conflict"].startswith("none "), (
        "its families made nobody"
    )


# --- what did it cost? What is known is summed, what is not is said -------------------------------------------------

PRICED = PaidView(
    model="openai/a", calls=1200, input_tokens=4_000_000, cached_tokens=1_000_000, output_tokens=90_000, usd=12.345,
    in_batches=1000, price_of="2026-03-31",
)  # fmt: skip
UNPRICED = PaidView(
    model="acme/b", calls=3, input_tokens=0, cached_tokens=None, output_tokens=0, usd=0.0, unpriced=3, untold=3
)


def view(*paid):
    return study_pages.cost_section(RunIndex.of(replace(runs.realistic(), paid=paid)))


@pytest.mark.parametrize(
    ("paid", "row"),
    [
        (PRICED, ("openai/a", "1,200, 1,000 in batches", "4,000,000", "1,000,000", "90,000", "12.35", "of 2026-03-31")),
        # Without a price there is no amount and no zero.
        (UNPRICED, ("acme/b", "3", *("not reported",) * 3, "not known", "no price known")),
        (replace(PRICED, unpriced=200, untold=150),
         ("openai/a", "1,200, 1,000 in batches", "4,000,000", "1,000,000", "90,000", "12.35",
          "of 2026-03-31; 200 calls without a price; tokens of 150 calls not reported")),
    ],
)  # fmt: skip
def test_a_model_has_what_is_known_of_its_price(paid, row):
    assert rows(tables(view(paid))["Model"]) == [row]


@pytest.mark.parametrize(("paid", "answer"), [
    ((PRICED,), "12.35 USD for 1,200 calls."), ((UNPRICED,), "3 calls of paid models; no price of them is known."),
    ((PRICED, UNPRICED), "12.35 USD for 1,200 calls; what 3 more cost is not known."),
])  # fmt: skip
def test_the_sum_says_what_is_in_it(paid, answer):
    assert view(*paid).lead == answer


def test_where_nobody_is_paid_there_is_no_section_and_a_ledger_that_could_not_be_read_is_said_to_be():
    assert study_pages.cost_section(RunIndex.of(runs.realistic())) is None
    assert 'id="cost"' not in pages("realistic")["plan.html"]
    hostile = render_pages(replace(runs.realistic(), paid=(replace(UNPRICED, model="acme/<script>x"),)))["plan.html"]
    assert 'id="cost"' in hostile
    assert "acme/&lt;script&gt;x" in hostile
    unread = study_pages.cost_section(RunIndex.of(replace(runs.realistic(), paid=None)))
    assert "could not be read where this page was made" in unread.lead
    assert unread.blocks == ()


@pytest.mark.parametrize(("usd", "shown"), [(0.0, "0.00"), (0.004, "0.004"), (0.01, "0.01"), (1234.5, "1,234.50")])
def test_amounts(usd, shown):
    assert money(usd) == shown
