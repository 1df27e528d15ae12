"""`python -m assaymark`: the command line, for where the program itself is not on the path."""

from __future__ import annotations

import sys

from assaymark.cli import main

sys.exit(main())
