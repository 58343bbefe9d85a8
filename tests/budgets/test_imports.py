"""A service that was just started has no package in memory that it has not used yet.

Each of these packages takes between one and eight megabytes of each process.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

# Colours and tables for terminals, look-ups of names that `net.resolver` does, and the other engine.
NEVER = {"rich", "pygments", "aiodns", "pycares", "psycopg"}
# With the first page for readers, or the first text in Markdown.
LATER = {"jinja2", "nh3", "segno", "markdown_it"}
# With the server, or with the first request to another one.
WITH_HTTP = {"aiohttp", "yarl", "idna", "attr", "frozenlist"}
WITHOUT_FEATURES = (
    "import smartfeeds.features; smartfeeds.features.FEATURES = (); from smartfeeds.cli import main; main(['run'])"
)
READY_S = 60.0


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    return {
        **os.environ,
        "SMARTFEEDS_COMPONENT__JID": "feeds.example.org",
        "SMARTFEEDS_COMPONENT__SECRET": "secret",
        "SMARTFEEDS_COMPONENT__PORT": "1",  # nobody listens there, and the service tries again
        "SMARTFEEDS_STORE__URL": f"sqlite:///{tmp_path}/feeds.db",
        "NOTIFY_SOCKET": f"{tmp_path}/notify",
    }


def loaded(environment: Mapping[str, str], listen: str, program: str) -> set[str]:
    """Returns the packages and modules that a service has imported when it reports that it has started."""
    command = [sys.executable, "-X", "importtime", "-c", program]
    report = Path(environment["NOTIFY_SOCKET"]).with_name("report")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, report.open("w") as output:
        ready.bind(environment["NOTIFY_SOCKET"])
        ready.settimeout(READY_S)
        service = subprocess.Popen(command, env={**environment, "SMARTFEEDS_HTTP__LISTEN": listen}, stderr=output)
        try:
            assert ready.recv(100) == b"READY=1"
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
    lines = report.read_text().splitlines()
    names = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert {"smartfeeds.app.lifecycle", "slixmpp", "lxml.etree"} <= names, lines[-5:]
    return names


def packages(names: set[str]) -> set[str]:
    """Returns the packages with imported modules. The report also names imports that failed, but no parts of these."""
    return {name.partition(".")[0] for name in names if "." in name}


def test_service_without_features_has_no_package_of_http_in_memory(environment: Mapping[str, str]) -> None:
    names = loaded(environment, "", WITHOUT_FEATURES)
    assert packages(names) & {*NEVER, *LATER, *WITH_HTTP} == set()
    assert "smartfeeds.http.site" not in names


def test_service_without_http_has_no_client_of_it_in_memory_before_its_use(environment: Mapping[str, str]) -> None:
    names = loaded(environment, "", "from smartfeeds.cli import main; main(['run'])")
    assert packages(names) & {*NEVER, *LATER, *WITH_HTTP} == set()
    # The features run: more of them is in memory than their declarations.
    assert any(name.startswith("smartfeeds.features.") and name.count(".") > 2 for name in names)


def test_service_with_all_features_has_no_package_in_memory_before_its_use(environment: Mapping[str, str]) -> None:
    names = loaded(environment, "127.0.0.1:0", "from smartfeeds.cli import main; main(['run'])")
    assert packages(names) & {*NEVER, *LATER} == set()
    assert {"aiohttp", "smartfeeds.http.site"} <= names
