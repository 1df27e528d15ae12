"""What CONTRIBUTING tells a newcomer is there: commands, folders, files, extras and options."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
COMMANDS = [shlex.split(line) for fence in FENCES for line in fence.replace("\\\n", " ").splitlines()]
NAMED = sorted(set(re.findall(r"`((?:src|tests|docs|bench|studies)/[\w./*]+|\w+\.(?:toml|yml|lock))`", PAGE)))


def test_a_command_names_what_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    installed = " ".join(extra for name in ("test", "dev", "docs") for extra in extras[name])
    for command in COMMANDS:
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


def test_files_and_packages_that_are_named_are_there_and_every_package_has_its_row():
    assert [name for name in NAMED if name != "fr.toml" and not list(ROOT.glob(name))] == []
    rows = set(re.findall(r"^\| [^|]+ \| `src/assaymark/(\w+)", PAGE, re.M))
    packages = {path.parent.name for path in (ROOT / "src" / "assaymark").glob("*/__init__.py")}
    assert packages - rows == {"prompting"}  # what prompts and replies are made of, for those who ask


def test_recipes_run_and_what_they_name_is_where_they_say():
    for session in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S):
        exec(compile(session, "<CONTRIBUTING.md>", "exec"), {})
    named = {
        "engine/providers/base.py": "class SdkModel", "engine/providers/registry.py": "GoogleModel",
        "importers/formats.py": "IMPORTERS", "report/measurements.py": "_TITLES",
        "report/study/pages.py": "def each_page", "claims/levels.py": "def candidate_claims",
    }  # fmt: skip
    source = ROOT / "src" / "assaymark"
    assert [name for name, word in named.items() if word not in (source / name).read_text(encoding="utf-8")] == []
    assert all(f"`src/assaymark/{name}`" in PAGE for name in named)
