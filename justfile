# What people type. CI calls the same commands.

default: test

# everything that must be green before a change lands
check: lint types test

lint:
    ruff check .
    ruff format --check .
    lint-imports

types:
    mypy

test:
    python -m pytest

cover:
    python -m pytest --cov --cov-report=term-missing

# ratios against named peers, measured in one session
bench:
    python -m pytest bench -s -q

# regenerate what the docs print from runs
docs:
    python docs/generate.py
    python docs/names.py
    python docs/seeds_table.py
    python docs/notebook.py

# the documentation as a site in site/, while it is written: mkdocs serve
site:
    mkdocs build --strict

demo:
    assaymark demo
