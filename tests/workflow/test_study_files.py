"""The study files that ship with the project: they parse, and say what their comments say."""

from __future__ import annotations

from pathlib import Path

from assaymark import workflow
from assaymark.importers.aitrader import TRACKS
from assaymark.protocol import parse_study
from assaymark.workflow import tracks

# The demo's study is part of the package, so that it runs where only the package is installed.
FOLDERS = (Path(workflow.__file__).parent, Path(__file__).resolve().parents[2] / "studies")
SEASONS = {
    path.stem: path for path in FOLDERS[1].glob("*.toml") if tracks.is_recorded(path.read_text(), source=path.name)
}
NOT_STUDIES = {"portbench", *SEASONS}  # the plan of a benchmark; tests/benchmark/test_benchmark_from_file.py reads it
FILES = {path.stem: path for folder in FOLDERS for path in folder.glob("*.toml") if path.stem not in NOT_STUDIES}


def study(name: str):
    return parse_study(FILES[name].read_text(encoding="utf-8"), source=f"{name}.toml")


def test_study_files_are_valid_and_named_after_themselves_and_reference_panels_have_three_families():
    for name in FILES:
        assert study(name).name == name
        assert study(name).title
    for name in ("capitalbench", "demo"):
        panel = study(name).judges
        assert {judge.model for judge in panel} == {"reference/auditor", "reference/reader", "reference/allocator"}
        assert len({judge.family for judge in panel}) == 3


def test_the_demo_is_the_shipped_study_but_for_its_name_and_its_sizes():
    demo, whole = (study(name).model_dump(mode="json") for name in ("demo", "valueblind"))
    whole |= {"name": "demo", "title": "Four reference agents on an invented market"}
    sizes = {"substrate": {"cycles": 8}, "controls": {"cell_a": 10, "cell_b": 10}, "anchor_probe": {"sample": 40}}
    assert demo == whole | {name: whole[name] | size for name, size in sizes.items()}


def test_the_two_studies_of_records_and_of_cycles_have_the_same_gates():
    assert study("valueblind").gates == study("capitalbench").gates
    # An import of a few weeks orders nobody, and is measured all the same; conflicting clocks are left out.
    weekly = study("capitalbench").inference
    assert study("valueblind").inference == weekly.model_copy(update={"allow_hopeless": False})
    assert study("capitalbench").records.exclude_flags == ("clock-conflict",)


def test_there_is_a_season_for_every_track_of_the_log_which_is_valid_and_named_after_itself():
    assert set(SEASONS) == {"capitalbench-season", *(f"aitrader-{track.name}" for track in TRACKS.values())}
    for name, path in SEASONS.items():
        file = tracks.read_recorded(path.read_text(encoding="utf-8"), source=f"{name}.toml")
        assert (file.problems, file.raw["name"]) == ((), name)
        assert name in (f"aitrader-{file.market.track}", f"{file.market.format}-season")
        assert len({judge.family for judge in file.panel}) == len(file.panel) == 3
        assert all(judge.model.startswith("reference/season-") for judge in file.panel)
