"""The verbs of judge datasheets, benchmarks and seasons, from the plan to the measurements on their pages."""

# ruff: noqa: F401, I001  # names for what is outside; nothing of it is promised, and so there is no __all__

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.workflow.tracks.benchmark import (
        bench_pipeline, bench_qa, bench_report, decide_bench, expect_bench, plan_text, resolve,
    )  # fmt: skip
    from assaymark.workflow.tracks.benchmark_measure import rationale_study
    from assaymark.workflow.tracks.benchmark_plan import open_bench, texts_of_stages
    from assaymark.workflow.tracks.datasheet import (
        MadeSheets, datasheet_name, measure_judges, point_calls, point_measurements, read_datasheet, stored_datasheets,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_accounts import SIXTY_FORTY, audit_day, settle_account
    from assaymark.workflow.tracks.season_context import (
        agent_context, agent_sections, context_json, day_material, agent_prompt,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_day import (
        DayJournal, guard, journal_path, steps_blocked, read_journal, run_season, step_season, times_of,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_judge import expect_season_judging, judge_season, season_parts, season_probes
    from assaymark.workflow.tracks.season_lock import LockedSeason, is_season, lock_season, open_season, stored_season
    from assaymark.workflow.tracks.season_facts import (
        SeasonMaterial, agent_measurements, record_notes, season_material, season_notes, stated_book,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_measures import (
        SeasonScores, SeasonTotals, judge_measurements, judge_noise, kappa_measurement, probe_measurements,
        season_comparisons, season_findings, season_orders, season_people, season_totals,
        table_measurements, words_written,
    )  # fmt: skip
    from assaymark.claims.season_plan import Season, is_recorded, parse_season, period_of, read_recorded
    from assaymark.workflow.tracks.season_publish import (
        MISQUOTED, claims_by_judge, decide_judged_season, gates_of, grade_views, ledger_view, publish_season,
        season_run,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_records import (
        BASELINES, CHECKS, DELISTED, FILLS, GRADES, GUESSES, NAVS, REJECTIONS, REPLACED, TIMES, SeasonCheck, SeasonFill,
        SeasonGrade, SeasonGuess, SeasonJudgments, SeasonNav, SeasonRejection, SeasonReplaced, SeasonTime,
    )  # fmt: skip

__getattr__ = exported(__name__)
