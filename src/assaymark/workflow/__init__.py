"""The verbs, one file each: read records, call one pure function, write records.

This package connects run folder, ledger, models and clock with the pure packages. A verb that is run again skips
what is done; one that is killed leaves either the old file or the new one, never part of one.
"""

# ruff: noqa: F401, I001  # packed, because it is a list; earlier names of classes can still be imported

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.workflow.amend import amend as amend_study, amendment_lines, make_controls, reparse
    from assaymark.workflow.ask import (
        Forecast, check_ledger_name, forecast, name_ledger, paid_lines, paid_models, paid_views, prices_of, raw_calls,
        require_not_stopped, unusable_decisions, ask as ask_judge,
    )  # fmt: skip
    from assaymark.workflow.check import (
        check_real, is_plan_of_scores, lock_plan, check as check_table,
    )  # fmt: skip
    from assaymark.workflow.claim import (
        VerifiedRun, verification_lines, verify_certificate, verify_run, claim as claim_study,
    )  # fmt: skip
    from assaymark.workflow.data import (
        check as check_market, facts as market_facts, pull as pull_market, show as show_market, synth as synth_market,
    )  # fmt: skip
    from assaymark.workflow.human_labels import (
        Draw, HumanGrade, draw_sample, redraw, redraw as recompute, store_draw, store_grades, stored_draw,
        stored_grades, store_labels, store_labels as take_over,
    )  # fmt: skip
    from assaymark.workflow.import_records import (
        import_grades, import_named_grades, store_records, import_records as import_files,
    )  # fmt: skip
    from assaymark.workflow.inspect_tasks import export_inspect, graded_value, item_names, preferred_value
    from assaymark.workflow.labelling import (
        CANNOT_SAY, FIELDS, Labelling, draw_cycles, draw_lines, open_labelling, read_labels, labelling_lines,
        labels_needed, frame_of,
    )  # fmt: skip
    from assaymark.workflow.lock import (
        STUDY, Locked, bench_text, lock_lines, open_locked, read_study, study_text, texts_of, lock as lock_study,
    )  # fmt: skip
    from assaymark.workflow.measure import (
        behaviour_of, behaviour_of as conduct_of, measure_behaviour, measure_behaviour as measured_conduct,
        known_scores, known_scores as oracle_known, score_by_oracle, score_by_oracle as scored_by_oracle,
        measure as measure_study,
    )  # fmt: skip
    from assaymark.workflow.plan_calls import PRICES, plan_calls_lines, ASSUMPTIONS, plan_calls_report
    from assaymark.workflow.progress import (
        Piece, Progress, ProgressDisplay, ProgressDisplay as Shown, bars, counts, note, cost_callback,
        cost_callback as paying, say, silent, watched,
    )  # fmt: skip
    from assaymark.workflow.proofread import (
        fix as fix_text, gate_claim, gate_lines, github_lines, read_decided, read_document, sarif, proofread_lines,
        proofread as proofread_text, Document, form_of,
    )  # fmt: skip
    from assaymark.workflow.publish import (
        StudyReport, in_flight_bound, planted_agents, report, report_unfinished, study_contents,
        study_contents as study_shown, substrate_view, StudyReport as Reported,
    )  # fmt: skip
    from assaymark.workflow.run_folder import (
        CHECKED, MANIFEST, RunFolder, changed_fields, file_sha256, json_text, kind_of, new_folder, read_json, read_lock,
        read_text, replace_files, replace_site,
    )  # fmt: skip
    from assaymark.workflow.score_files import (
        Checked, Computing, computing_of, default_study, measure_table, open_checked, study_toml,
    )  # fmt: skip
    from assaymark.workflow.serve import (
        EVERY, HOST, LabelServer, LabelServer as LabelDesk, RunServer, RunServer as Served, join_runs, listen,
        open_server,
    )  # fmt: skip
    from assaymark.workflow.study_calls import JudgeResult, JudgingSession, decide, judge, work, work_lines
    from assaymark.workflow.tables import (
        ANCHOR, CONTEXTS, CYCLES, DECISIONS, EVIDENCE, HUMAN, JUDGMENTS, MEASUREMENTS, OUTCOMES, PAIRS, POINTS, PROBE,
        SCORES, VERDICTS, Store, RecordTable, RecordTable as Table, content_digest, export_arrow, verdicts_of,
    )  # fmt: skip
    from assaymark.workflow.tracks.benchmark import (
        bench_pipeline, bench_qa, bench_report, default_folder, expect_bench, plan_text, write_set,
    )  # fmt: skip
    from assaymark.workflow.tracks.datasheet import (
        MadeSheets, datasheet_report, judges_of, log_map, measure_judges, measure_log, tested_by,
    )  # fmt: skip
    from assaymark.workflow.tracks.season_day import run_season, start_season, step_season
    from assaymark.workflow.tracks.season_judge import expect_season_judging, expect_season_run, judge_season
    from assaymark.workflow.tracks.season_publish import chosen_languages, publish_season
    from assaymark.workflow.verbs import (
        demo, expect_datasheets, expect_judging, expect_study, finish, start,
        plan_calls as         plan_further_calls,
    )  # fmt: skip
    from assaymark.claims.certification import VerdictFile
    from assaymark.workflow.amend import adopt_rules, open_version_1, renewed_text, texts_of_1

__all__ = [
    "ANCHOR", "ASSUMPTIONS", "CANNOT_SAY", "CHECKED", "CONTEXTS", "CYCLES", "DECISIONS", "EVERY", "EVIDENCE", "FIELDS",
    "HOST", "HUMAN", "JUDGMENTS", "MANIFEST", "MEASUREMENTS", "OUTCOMES", "PAIRS", "POINTS", "PRICES", "PROBE",
    "SCORES", "STUDY", "VERDICTS", "Checked", "Computing", "Document", "Draw", "Forecast", "HumanGrade", "JudgeResult",
    "JudgingSession", "LabelServer", "Labelling", "Locked", "MadeSheets", "Piece", "Progress",
    "ProgressDisplay", "RecordTable", "RunFolder", "RunServer", "Store", "StudyReport", "VerdictFile", "VerifiedRun",
    "adopt_rules", "amend_study", "amendment_lines", "ask_judge", "bars", "behaviour_of", "bench_pipeline", "bench_qa",
    "bench_report", "bench_text", "changed_fields", "check_ledger_name", "check_market", "check_real", "check_table",
    "chosen_languages", "claim_study", "computing_of", "content_digest", "cost_callback", "counts", "datasheet_report",
    "decide", "default_folder", "default_study", "demo", "draw_cycles", "draw_lines", "draw_sample", "expect_bench",
    "expect_datasheets", "expect_judging", "expect_season_judging", "expect_season_run", "expect_study", "export_arrow",
    "export_inspect", "file_sha256", "finish", "fix_text", "forecast", "form_of", "frame_of", "gate_claim",
    "gate_lines", "github_lines", "graded_value", "import_files", "import_grades", "import_named_grades",
    "in_flight_bound",
    "is_plan_of_scores", "item_names", "join_runs", "json_text", "judge", "judge_season", "judges_of", "kind_of",
    "known_scores", "labelling_lines", "labels_needed", "listen", "lock_lines", "lock_plan", "lock_study", "log_map",
    "make_controls", "market_facts", "measure_behaviour", "measure_judges", "measure_log", "measure_study",
    "measure_table", "name_ledger", "new_folder", "note", "open_checked", "open_labelling", "open_locked",
    "open_server", "open_version_1", "paid_lines", "paid_models", "paid_views", "plan_calls_lines",
    "plan_calls_report", "plan_further_calls", "plan_text", "planted_agents", "preferred_value", "prices_of",
    "proofread_lines", "proofread_text", "publish_season", "pull_market", "raw_calls", "read_decided", "read_document",
    "read_json", "read_labels", "read_lock", "read_study", "read_text", "redraw", "renewed_text", "reparse",
    "replace_files", "replace_site", "report", "report_unfinished", "require_not_stopped", "run_season", "sarif", "say",
    "score_by_oracle", "show_market", "silent", "start", "start_season", "step_season", "store_draw", "store_grades",
    "store_labels", "store_records", "stored_draw", "stored_grades", "study_contents", "study_text", "study_toml",
    "substrate_view", "synth_market", "tested_by", "texts_of", "texts_of_1", "unusable_decisions", "verdicts_of",
    "verification_lines", "verify_certificate", "verify_run", "watched", "work", "work_lines", "write_set",
]  # fmt: skip

__getattr__ = exported(__name__)
