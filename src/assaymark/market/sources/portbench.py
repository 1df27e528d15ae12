"""A market table from a dataset: fetched as a file, read by the reader of files, which knows PortBench's traps."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from assaymark.market.file_source import snapshot_from_file
from assaymark.market.sources.hub import fetch_file
from assaymark.market.sources.request import Asking, Draft, Request
from assaymark.market.sources.tables import from_source


def fetch(request: Request, asking: Asking) -> Draft:
    """The one CSV or Parquet file of a dataset as a snapshot's tables.

    PortBench's file is 4,017 calendar days by 1,087 columns. Its price levels are winsorised over the whole sample and
    its ``_return`` columns are log returns: the notes say so, and no return of the file is used.
    """
    with TemporaryDirectory() as place:
        fetched = fetch_file(request, asking, Path(place), (".csv", ".parquet"))
        read = snapshot_from_file(
            fetched.path, now=asking.now, symbols=request.symbols, start=request.start, end=request.end,
            currency=request.options.get("currency", ""),
        )  # fmt: skip
    said = (f"commit {fetched.commit}", f"the dataset's card states the licence: {fetched.licence}")
    return Draft(from_source(read.tables, f"huggingface {fetched.repo}"), (*read.origin.notes, *said))
