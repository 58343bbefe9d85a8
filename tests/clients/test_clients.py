"""Clients that people use, against a default service on real servers: the table of docs/clients.md."""

import asyncio
import sys
from pathlib import Path

import pytest

from clients import faults
from clients.matrix import CLIENTS, REMOTE_CLIENTS, Key, Results, run_all

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import clients_table

PLACES = {
    ("Prosody", "ejabberd"): CLIENTS,
    ("Prosody to ejabberd", "ejabberd to Prosody"): REMOTE_CLIENTS,
}
RUNS = [
    Key(client.name, place, kind.name)
    for places, clients in PLACES.items()
    for client in clients
    for place in places
    for kind in client.kinds
]
pytestmark = pytest.mark.timeout(600)  # the first test waits for all clients on both servers


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The outcome of every operation."""
    return asyncio.run(run_all(tmp_path_factory.mktemp("clients")))


@pytest.mark.parametrize("key", RUNS, ids=lambda key: f"{key.client}-{key.server}-{key.kind}")
def test_client_can_do_everything_that_it_knows(results: Results, key: Key) -> None:
    unexpected = []
    for operation, cell in results[key].items():
        known = faults.known(key.client, key.kind, operation)
        if cell.outcome == "wrong" and not known:
            stanzas = "".join(f"\n    > {sent}\n    < {answer}" for sent, answer in cell.exchanges)
            unexpected.append(f"{operation}: {cell.reason}{stanzas}")
        elif cell.outcome == "yes" and known:
            unexpected.append(f"{operation}: works now; remove it from faults.py")

    assert not unexpected, "\n".join(unexpected)


def test_page_of_clients_is_current(results: Results) -> None:
    assert clients_table.PAGE.read_text("utf-8") == clients_table.page(results), "run tools/clients_table.py"
