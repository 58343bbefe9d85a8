"""The alerting rules for Prometheus query metrics, labels and outcomes that exist, and name sections that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from smartfeeds import telemetry
from smartfeeds.errors import Condition
from smartfeeds.features.cluster.metrics import DatabaseReading, StandbyLagReading, StandbyReading
from support.headings import anchors
from support.metrics import metric_names, sample_names

LABELS = {"job", "instance"}  # Prometheus adds them


@pytest.fixture(scope="module")
def rules(root: Path) -> list[dict[str, Any]]:
    """The rules of all groups."""
    groups = yaml.safe_load((root / "config/alerts.yaml").read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def labels_of(name: str) -> set[str]:
    """The labels of a metric in the registry, and of those that are read when it is scraped."""
    for family in telemetry.GATHERED.describe():
        if family.name == name:
            return set(family._labelnames)
    collector = telemetry.REGISTRY._names_to_collectors.get(name)
    source = next(collector.describe()) if isinstance(collector, telemetry.Tally | telemetry.Durations) else collector
    return set(getattr(source, "_labelnames", ()))


def test_rules_query_metrics_that_exist(rules: list[dict[str, Any]]) -> None:
    """[OPS-080] [OPS-083] [OPS-086] A wrong name would be an alert that never fires."""
    names = [name for rule in rules for name in re.findall(r"smartfeeds_\w+", rule["expr"])]

    assert len(names) > 10
    assert [name for name in names if name not in sample_names()] == []
    assert {"smartfeeds_oldest_unpushed_seconds", "smartfeeds_link_online"} <= set(names)


def test_rules_use_labels_and_values_that_exist(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        labels = LABELS | {"le"}
        for name in re.findall(r"smartfeeds_\w+", rule["expr"]):
            labels |= labels_of(sample_names()[name])
        expression = rule["expr"]
        by = {label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")}
        selected = set(re.findall(r"(\w+)[=!]~?\"", expression))
        shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert by | selected | shown <= labels, rule["alert"]
        for outcome in re.findall(r'outcome="([^"]+)"', expression):
            assert outcome in {condition.value for condition in Condition}, rule["alert"]


def test_sums_are_not_made_of_values_that_all_processes_read_from_the_store(
    root: Path, rules: list[dict[str, Any]]
) -> None:
    """[OPS-085] These gauges are the same everywhere, so a sum would count each feed once for each process. Neither the
    alerts nor the dashboard add them up."""
    kinds = (telemetry.BacklogReading, DatabaseReading, StandbyReading, StandbyLagReading)
    families = [family for kind in kinds for family in telemetry.families(kind)]
    assert len(families) == 9
    assert [family.name for family in families if "equal in all" not in family.documentation] == []
    shared = {name for name, text in metric_names().items() if "equal in all" in text}
    assert shared == {"smartfeeds_callbacks", *(family.name for family in families)}

    dashboard = json.loads((root / "config/grafana.json").read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked = set()
    for query in (*queries, *(rule["expr"] for rule in rules)):
        for aggregation, by, name in re.findall(r"(?:(\w+)(?: by \(([^)]*)\))? ?\()?(smartfeeds_\w+)", query):
            if name in shared:
                asked.add(name)
                assert aggregation in ("max", "min") or "instance" in by, query
    assert asked == shared


def test_rules_lead_to_pages_and_say_how_urgent_they_are(root: Path, rules: list[dict[str, Any]]) -> None:
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        page, _, section = rule["annotations"]["runbook"].partition("#")
        assert (root / page).exists(), rule["alert"]
        assert not section or section in anchors(root / page), rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
