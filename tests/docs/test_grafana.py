"""The dashboard for Grafana queries the metrics that the service has, and all of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.app.opening import all_use_cases
from support.metrics import sample_names
from support.routes import TABLE

SELECTOR = re.compile(r"(smartfeeds_\w+)\{([^}]*)\}")


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    """The dashboard."""
    path = Path(__file__).parents[2] / "config/grafana.json"
    value: dict[str, Any] = json.loads(path.read_text())
    return value


@pytest.fixture(scope="module")
def queries(dashboard: dict[str, Any]) -> list[str]:
    """The PromQL queries of all panels."""
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


def test_dashboard_queries_every_metric_and_no_other(queries: list[str]) -> None:
    names = re.findall(r"smartfeeds_\w+", " ".join(queries))

    assert [name for name in names if name not in sample_names()] == []
    assert {sample_names()[name] for name in names} == set(sample_names().values())


def test_dashboard_queries_labels_that_the_metrics_have(queries: list[str]) -> None:
    known = {"operation", "outcome", "condition", "kind", "mirror", "direction", "instance", "le"}
    known |= {"result", "dialect", "state", "effect", "reason"}
    by = {label for query in queries for names in re.findall(r"by \(([^)]*)\)", query) for label in names.split(", ")}
    matched = {
        label for query in queries for _, text in SELECTOR.findall(query) for label in re.findall(r"(\w+)[=!]", text)
    }

    assert by | matched <= known
    assert all("instance=~" in text for query in queries for _, text in SELECTOR.findall(query))


def test_dashboard_names_operations_that_exist(queries: list[str]) -> None:
    operations = {*all_use_cases().names.values(), *(f"http_{route.metric}" for route in TABLE)}
    named = {
        name for query in queries for text in re.findall(r'operation=~"([^"]*)"', query) for name in text.split("|")
    }

    assert {"publish", "pull", "http_feed"} <= named <= operations


def test_dashboard_can_be_imported(dashboard: dict[str, Any]) -> None:
    """Grafana 10 needs unique numbers and places, and asks for the data source by the variable."""
    panels = dashboard["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]

    assert len({panel["id"] for panel in panels}) == len(set(places)) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    assert {target["datasource"]["uid"] for panel in panels for target in panel.get("targets", ())} == {"${datasource}"}
    assert [variable["name"] for variable in dashboard["templating"]["list"]] == ["datasource", "instance"]
    assert dashboard["schemaVersion"] <= 39  # that of Grafana 10.4; older versions refuse newer ones
