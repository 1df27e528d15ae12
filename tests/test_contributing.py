"""What CONTRIBUTING tells a newcomer is there: commands, folders, files, extras and options."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
COMMANDS = [shlex.split(line) for fence in FENCES for line in fence.replace("\\\n", " ").splitlines()]
NAMED = sorted(set(re.findall(r"`((?:src|tests|docs|bench|studies)/[\w./*]+|\w+\.(?:toml|yml|lock))`", PAGE)))
NOT_THERE = {"fr.toml"}
SESSIONS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


def words(command: list[str]) -> str:
    return " ".join(command)


@pytest.mark.parametrize("command", COMMANDS, ids=words)
def test_a_command_names_what_is_there(command):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    installed = " ".join(extra for name in ("test", "dev", "docs") for extra in extras[name])
    match command:
        case ["python3", "-m", "venv", _] | [".", _]:
            pass
        case ["python", "-m", "pip", "install", "-e", what]:
            assert set(what.removeprefix(".[").removesuffix("]").split(",")) <= set(extras)
        case ["python", "-m", "pytest", *paths]:
            assert [path for path in paths if not (ROOT / path).exists()] == []
        case ["python", script, *_]:
            assert (ROOT / script).is_file()
        case ["pip-compile", *_]:
            assert command[-1] == "pyproject.toml"
        case [tool, *_]:
            assert {"lint-imports": "import-linter"}.get(tool, tool) in installed


@pytest.mark.parametrize("name", NAMED)
def test_a_file_or_folder_that_is_named_is_there(name):
    if name not in NOT_THERE:
        assert list(ROOT.glob(name)), name


def test_every_package_has_its_row():
    rows = set(re.findall(r"^\| [^|]+ \| `src/assaymark/(\w+)", PAGE, re.M))
    packages = {path.parent.name for path in (ROOT / "src" / "assaymark").glob("*/__init__.py")}
    assert packages - rows == {"prompting"}  # what prompts and replies are made of, for those who ask


@pytest.mark.parametrize("session", SESSIONS, ids=range(len(SESSIONS)))
def test_a_recipe_that_can_be_run_runs(session):
    exec(compile(session, "<CONTRIBUTING.md>", "exec"), {})


def test_what_the_recipes_name_is_where_they_say():
    named = {
        "engine/providers/base.py": "class SdkModel", "engine/providers/registry.py": "GoogleModel",
        "importers/formats.py": "IMPORTERS", "report/measurements.py": "_TITLES",
        "report/study/pages.py": "def each_page", "claims/levels.py": "def candidate_claims",
    }  # fmt: skip
    source = ROOT / "src" / "assaymark"
    assert [name for name, word in named.items() if word not in (source / name).read_text(encoding="utf-8")] == []
    assert all(f"`src/assaymark/{name}`" in PAGE for name in named)
