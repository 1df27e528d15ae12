"""One file per verb: read records, call one pure function, write records.

This is where the run folder, the ledger, the models and the clock meet the pure packages. A verb that is run twice
does its work once; a verb that is killed leaves either the old file or the new one, never half of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.workflow.check import Checked, check_real, open_checked
    from assaymark.workflow.check import check as check_table
    from assaymark.workflow.claim import VerifiedRun, verify_run
    from assaymark.workflow.export import export_arrow, export_inspect
    from assaymark.workflow.human_labels import (
        Draw,
        HumanGrade,
        draw_sample,
        recompute,
        store_draw,
        store_grades,
        stored_draw,
        stored_grades,
        take_over,
    )
    from assaymark.workflow.import_records import import_grades, import_named_grades, store_records
    from assaymark.workflow.import_records import import_records as import_files
    from assaymark.workflow.joining import join_runs
    from assaymark.workflow.labelling import CANNOT_SAY, FIELDS, open_labelling, read_labels
    from assaymark.workflow.labelling import lines as labelling_lines
    from assaymark.workflow.lock import STUDY, Locked, lock_lines, open_locked, texts_of
    from assaymark.workflow.lock import lock as lock_study
    from assaymark.workflow.measure import conduct_of, measured_conduct, oracle_known, scored_by_oracle
    from assaymark.workflow.progress import Piece, Shown, bars, silent
    from assaymark.workflow.publish import (
        Reported,
        in_flight_bound,
        planted_agents,
        report,
        study_shown,
        substrate_view,
    )
    from assaymark.workflow.run_folder import (
        MANIFEST,
        RunFolder,
        changed_fields,
        json_text,
        new_folder,
        read_json,
        read_text,
        replace_files,
        replace_site,
    )
    from assaymark.workflow.score_files import (
        Computing,
        MeasuredTable,
        computing_of,
        default_study,
        measure_table,
        study_toml,
    )
    from assaymark.workflow.serve import HOST, LabelDesk, Served, listen, open_server
    from assaymark.workflow.study_calls import JudgeResult, JudgingSession, decide
    from assaymark.workflow.tables import (
        ANCHOR,
        CONTEXTS,
        CYCLES,
        DECISIONS,
        EVIDENCE,
        HUMAN,
        JUDGMENTS,
        MEASUREMENTS,
        OUTCOMES,
        PAIRS,
        POINTS,
        PROBE,
        SCORES,
        VERDICTS,
        Store,
        Table,
        content_digest,
    )
    from assaymark.workflow.verdict_file import VerdictFile

__all__ = [
    "ANCHOR", "CANNOT_SAY", "CONTEXTS", "CYCLES", "DECISIONS", "EVIDENCE", "FIELDS", "HOST", "HUMAN", "JUDGMENTS",
    "MANIFEST", "MEASUREMENTS", "OUTCOMES", "PAIRS", "POINTS", "PROBE", "SCORES", "STUDY", "VERDICTS", "Checked",
    "Computing", "Draw", "HumanGrade", "JudgeResult", "JudgingSession", "LabelDesk", "Locked", "MeasuredTable", "Piece",
    "Reported", "RunFolder", "Served", "Shown", "Store", "Table", "VerdictFile", "VerifiedRun", "bars",
    "changed_fields", "check_real", "check_table", "computing_of", "conduct_of", "content_digest", "decide",
    "default_study", "draw_sample", "export_arrow", "export_inspect", "import_files", "import_grades",
    "import_named_grades", "in_flight_bound", "join_runs", "json_text", "labelling_lines", "listen", "lock_lines",
    "lock_study", "measure_table", "measured_conduct", "new_folder", "open_checked", "open_labelling",
    "open_locked", "open_server", "oracle_known", "planted_agents", "read_json", "read_labels", "read_text",
    "recompute", "replace_files", "replace_site", "report", "scored_by_oracle", "silent", "store_draw",
    "store_grades", "store_records", "stored_draw", "stored_grades", "study_shown", "study_toml", "substrate_view",
    "take_over", "texts_of", "verify_run",
]  # fmt: skip

__getattr__ = exported(__name__)
