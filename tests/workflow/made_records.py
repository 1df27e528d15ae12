"""The study files of these tests, and a small study in the generic format, as its template describes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from assaymark.importers import template

STUDY = Path(__file__).with_name("imported.toml")
"""A study of the records of ``imported_records``."""

OWN = Path(__file__).with_name("own.toml")
"""A small study that makes its own records."""

HEAD = "round,time,agent,maker,seen,prompt,ticker,order,size,sure,thesis,risks"


def generic_records(folder: Path, *, agents=("alpha", "beta", "gamma"), rounds: int = 12) -> None:
    """Write a map and decisions of ``agents`` over ``rounds`` rounds, one a week."""
    folder.mkdir(exist_ok=True)
    (folder / "map.toml").write_text(template())
    start = datetime(2026, 1, 5, 15, tzinfo=UTC)
    lines = [HEAD]
    for number in range(rounds):
        at = (start + timedelta(weeks=number)).isoformat().replace("+00:00", "Z")
        for place, agent in enumerate(agents):
            size = f"{0.2 + 0.1 * place:.1f}"
            thesis = f"A rose {number + 1}.{place} percent and I hold {size} of it because rates may fall."
            lines.append(
                f'r{number},{at},{agent},{agent}-labs,r{number},"Pick one of A and B. A rose {number + 1}.0 percent.",'
                f'A,buy,{size},0.6,"{thesis}","A may fall {place + 2} percent."'
            )
    (folder / "decisions.csv").write_text("\n".join(lines) + "\n")
