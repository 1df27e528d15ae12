"""Verdict logs of any size in CSV, written in a second.

As a program: ``python tests/importers/made_verdicts.py 1e6 verdicts.csv``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

JUDGES = ("auditor", "reader", "skeptic", "teller")
CONTENTS = 12
VERDICTS = ("1", "2", "tie", "invalid")


def write_verdicts(path: Path, rows: int, *, seed: int = 7, questions: int = 1000, shuffled: bool = True) -> None:
    """Write about ``rows`` calls: every judge on every pair in both orders, no call twice.

    The first slot wins 45 in 100 calls, the second 40; the rest are ties, and 2 in 100 are invalid.
    """
    rng = np.random.default_rng(seed)
    pairs = rows // (2 * len(JUDGES))
    question = np.arange(pairs) % questions
    # The pairs of a question count through all two of the contents, and go on with the next trial.
    u, v = np.triu_indices(CONTENTS, 1)
    place = np.arange(pairs) // questions
    kind, trial = place % u.size, place // u.size
    code = np.arange(pairs * 2 * len(JUDGES))
    if shuffled:
        rng.shuffle(code)
    judge, swapped, pair = code % len(JUDGES), code // len(JUDGES) % 2 == 1, code // (2 * len(JUDGES))
    left, right = u[kind[pair]], v[kind[pair]]
    verdict = rng.choice(len(VERDICTS), size=code.size, p=[0.45, 0.40, 0.13, 0.02])
    names = [f"model-{k:02d}" for k in range(CONTENTS)]
    columns = {
        "judge": _named(judge, JUDGES), "question_id": pa.array(question[pair]).cast(pa.string()),
        "slot1_model": _named(np.where(swapped, right, left), names),
        "slot2_model": _named(np.where(swapped, left, right), names), "verdict": _named(verdict, VERDICTS),
        "rep": pa.array(trial[pair]),
    }  # fmt: skip
    pacsv.write_csv(pa.table(columns), path, pacsv.WriteOptions(quoting_style="none"))


def _named(codes: np.ndarray, names: tuple[str, ...] | list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).dictionary_decode()


if __name__ == "__main__":
    write_verdicts(Path(sys.argv[2]), int(float(sys.argv[1])))
