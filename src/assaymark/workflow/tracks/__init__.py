"""What each track does: a study of a judge, a benchmark and a season, from the plan to the numbers of its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.workflow.tracks.benchmark import (
        Wanted,
        bench_pipeline,
        bench_qa,
        bench_report,
        bench_shown,
        plan_text,
        resolved,
    )  # fmt: skip
    from assaymark.workflow.tracks.benchmark_measure import study_text
    from assaymark.workflow.tracks.benchmark_plan import expected, is_benchmark, open_bench, texts_of_stages
    from assaymark.workflow.tracks.datasheet import (
        Made,
        datasheet_name,
        measure_judges,
        point_calls,
        point_measurements,
        read_datasheet,
        stored_datasheets,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_books import SIXTY_FORTY, Account, checked, settle_account
    from assaymark.workflow.tracks.season_context import (
        SeasonMaterial,
        agent_context,
        agent_sections,
        context_json,
        day_material,
        season_material,
        told,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_day import (
        Journal,
        alone,
        journal_path,
        not_stepping,
        read_journal,
        run_season,
        step_season,
        times_of,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_judge import (
        SeasonJudged,
        expect_season_judging,
        judge_season,
        season_horizons,
        season_parts,
        season_probes,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_lock import LockedSeason, is_season, lock_season, open_season, stored_season
    from assaymark.workflow.tracks.season_measure import (
        SeasonScores,
        SeasonTotals,
        agent_measurements,
        judge_noise,
        mean_composites,
        season_totals,
        table_measurements,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_measures import (
        judge_measurements,
        kappa_measurement,
        probe_measurements,
        season_findings,
        season_orders,
        season_people,
        written,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_plan import Season, is_recorded, parse_season, period_of, read_recorded
    from assaymark.workflow.tracks.season_publish import decide_judged_season, gates_of, publish_season
    from assaymark.workflow.tracks.season_records import (
        BASELINES,
        CHECKS,
        DELISTED,
        FILLS,
        GRADES,
        GUESSES,
        NAVS,
        REJECTIONS,
        REPLACED,
        TIMES,
        SeasonCheck,
        SeasonGrade,
        SeasonGuess,
        SeasonJudgments,
        SeasonNav,
        SeasonReplaced,
        SeasonTime,
        stated_book,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_view import (
        MISQUOTED,
        OWN,
        claims_by_judge,
        grade_views,
        ledger_view,
        record_notes,
        season_notes,
        season_rules,
        season_run,
        season_steps,
    )  # fmt: skip

__all__ = [
    "BASELINES", "CHECKS", "DELISTED", "FILLS", "GRADES", "GUESSES", "MISQUOTED", "NAVS", "OWN", "REJECTIONS",
    "REPLACED", "SIXTY_FORTY", "TIMES", "Account", "Journal", "LockedSeason", "Made", "Season", "SeasonCheck",
    "SeasonGrade", "SeasonGuess", "SeasonJudged", "SeasonJudgments", "SeasonMaterial", "SeasonNav", "SeasonReplaced",
    "SeasonScores", "SeasonTime", "SeasonTotals", "Wanted", "agent_context", "agent_measurements", "agent_sections",
    "alone", "bench_pipeline", "bench_qa", "bench_report", "bench_shown", "checked", "claims_by_judge", "context_json",
    "datasheet_name", "day_material", "decide_judged_season", "expect_season_judging", "expected", "gates_of",
    "grade_views", "is_benchmark", "is_recorded", "is_season", "journal_path", "judge_measurements", "judge_noise",
    "judge_season", "kappa_measurement", "ledger_view", "lock_season", "mean_composites", "measure_judges",
    "not_stepping", "open_bench", "open_season", "parse_season", "period_of", "plan_text", "point_calls",
    "point_measurements", "probe_measurements", "publish_season", "read_datasheet", "read_journal", "read_recorded",
    "record_notes", "resolved", "run_season", "season_findings", "season_horizons", "season_material", "season_notes",
    "season_orders", "season_parts", "season_people", "season_probes", "season_rules", "season_run", "season_steps",
    "season_totals", "settle_account", "stated_book", "step_season", "stored_datasheets", "stored_season",
    "study_text", "table_measurements", "texts_of_stages", "times_of", "told", "written",
]  # fmt: skip

__getattr__ = exported(__name__)
