"""One file per verb: read records, call one pure function, write records.

This is where the run folder, the ledger, the models and the clock meet the pure packages. A verb that is run twice
does its work once; a verb that is killed leaves either the old file or the new one, never half of one.
"""

from __future__ import annotations
