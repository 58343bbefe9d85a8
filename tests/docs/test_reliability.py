"""The page of the campaigns shows the record, and the record is made of rows of real runs."""

from datetime import date

from campaign import report
from campaign.__main__ import CAMPAIGNS

ROW = {
    "campaign": "kill",
    "variant": "",
    "defect": "",
    "date": "2026-01-01",
    "version": "1",
    "faults": 2,
    "seed": 1,
    "findings": 0,
    "counts": {"acknowledged": 5},
    "recovery_s": {"kill": [3, 1.0, 2.0]},
}


def test_tables_are_those_of_the_record() -> None:
    """[CAM-080] `make campaign NAME=page` writes them."""
    page = report.PAGE.read_text("utf-8")
    assert report.with_tables(page, report.read()) == page, "run make campaign NAME=page"


def test_record_has_seed_version_and_verdict_of_each_run() -> None:
    """[CAM-080]"""
    rows = report.read()
    assert rows
    for row in rows:
        assert row["campaign"] in CAMPAIGNS
        assert date.fromisoformat(row["date"]) and row["version"] and row["faults"] > 0
        assert (row["verdict"] == "sound") == (row["findings"] == 0)


def test_every_negative_control_was_seen_by_the_checker() -> None:
    """[CAM-036]"""
    controls = [row for row in report.read() if row["defect"]]
    assert controls
    assert [row for row in controls if row["verdict"] == "sound"] == []


def test_every_campaign_is_described() -> None:
    page = report.PAGE.read_text("utf-8")
    assert [name for name in CAMPAIGNS if f"\n| `{name}` |" not in page] == []


def test_figures_of_others_are_beside_ours() -> None:
    """[CAM-070 to CAM-077]"""
    _, _, others = report.PAGE.read_text("utf-8").partition("## What others publish")
    for name in ("NATS", "Redpanda", "Patroni", "GitLab", "SQLite", "TigerBeetle", "Datadog", "LazyFS"):
        assert f"{name}" in others


def test_sums_add_runs_of_one_campaign() -> None:
    """Times are weighted by how often a fault happened."""
    row = ROW
    later = {**row, "seed": 2, "date": "2026-01-02", "recovery_s": {"kill": [1, 9.0, 9.5]}}
    table = report.tables([row, later])
    assert "| kill | 4 | 10 | 0 | 0 | 0 | 1.0 s, 9.5 s | 1, 2 | 1, 2026-01-02 |" in table
    assert "Negative controls" not in table and "Takeovers" not in table
    taken_over = {**row, "recovery_s": {"kill": [1, 1.0, 1.0], "takeover after kill": [2, 3.0, 4.5]}}
    table = report.tables([taken_over])
    assert "| kill | 2 | 5 | 0 | 0 | 0 | 1.0 s, 1.0 s |" in table
    assert "| kill | takeover after kill | 2 | 3.0 s, 4.5 s |" in table
    assert "| kill late | 2 | 5 |" in report.tables([{**row, "defect": "late"}])


def test_inputs_are_added_for_each_parser() -> None:
    """[CAM-060] Each parser has a goal of its own, and so a sum of its own."""
    row = {**ROW, "campaign": "fuzz", "counts": {"faults": 1, "lua inputs": 5, "json inputs": 2}}
    table = report.tables([row, {**row, "variant": "lua", "counts": {"lua inputs": 3}}])
    assert "| json | 2 |\n| lua | 8 |" in table
    assert "| fuzz | 4 | 0 |" in table
