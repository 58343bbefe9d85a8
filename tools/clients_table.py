"""Builds docs/clients.md: which operation works with which client.

`python tools/clients_table.py` runs the clients against a default service on Prosody and on ejabberd, and writes the
page. tests/clients/test_clients.py checks that the page is current.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "component")]

from clients import faults  # noqa: E402 - the tests are no package
from clients.matrix import CLIENTS, REMOTE_CLIENTS, ClientKind, Results, run_all  # noqa: E402
from clients.operations import APPLICATION, OPERATIONS  # noqa: E402
from clients.run import Cell  # noqa: E402

PAGE = ROOT / "docs" / "clients.md"

_HEAD = """\
# Clients

This page is for people who choose a client or write one. It lists what works with each client on a default service.
`make docs` runs the libraries themselves against real Prosody and real ejabberd, with a feed and with a generic node,
and writes the page. A test checks that it is current.

`yes` means that the operation works on both servers and for both kinds of nodes. Otherwise the cell names the cause,
`client` or `service`, and the reason. `-` means that the client leaves the operation to the application, or that its
nodes have no use for it. The *remote user* is on another server than the service, which allows that server in
`pubsub.creators`. Where a row names another user, that user sends plain stanzas.
"""

_SECTIONS = {
    "Libraries": ("slixmpp", "slixmpp, remote user", "nbxmpp", "aioxmpp", "xmpp.js", "StanzaJS", "strophe.js"),
    "Applications and bots": ("Movim", "Libervia", "atomtopubsub", "slixfeed"),
}

_NOTES = """
## Notes

- **slixmpp** attaches result sets to service discovery only. The test registers them for pubsub with
  `register_stanza_plugin(Pubsub, Set)`, and reads pages with the iterator of the library.
- **nbxmpp** is the library of Gajim. It creates nodes by publishing to them, which `pubsub.auto_create` allows.
- **aioxmpp** remembers the list of nodes. `DiscoClient.query_items(..., require_fresh=True)` reads it again.
- **xmpp.js** and **strophe.js** carry XML. The application builds the stanzas of pubsub, with strophe.js partly by its
  pubsub plugin.
- **StanzaJS** sends a result set with every request for items. `after: ""` requests the first page.
- **Movim** is a web application. The test sends its stanzas with slixmpp and reads the answers as Movim does. A generic
  node of Movim is a Space. Movim shows requests to subscribe and decides them by affiliations.
- **Libervia** is the command line of Debian's package `libervia-cli` with its backend. It sends subscriptions to the
  user's own server (XEP-0376), even if that server does not support the protocol. The test reads notifications by a
  hook (`pubsub hook create`), which the backend runs for every item.
- **atomtopubsub** reads the configuration of a node before it creates the node, and ends if there is none. The test
  sends the stanza that creates the node. **atomtopubsub** and **slixfeed** write XML that is not well-formed with
  slixmpp 1.17. The test uses slixmpp 1.15.
- For other users a node with the access model `whitelist` is closed: they get `not-allowed` with `closed-node`.
"""


def page(results: Results) -> str:
    """The text of docs/clients.md."""
    lines = [_HEAD]
    names = {client.name: client for client in [*CLIENTS, *REMOTE_CLIENTS]}
    for title, section in _SECTIONS.items():
        clients = [names[name] for name in section if name in names]
        lines.append(f"\n## {title}\n\n| operation | {' | '.join(client.name for client in clients)} |")
        lines.append("|---" * (len(clients) + 1) + "|")
        for operation in OPERATIONS:
            texts = [_cell(results, client, operation) for client in clients]
            if set(texts) != {"-"}:
                lines.append(f"| {operation} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n" + _NOTES


def _cell(results: Results, client: ClientKind, operation: str) -> str:
    """The cell of a client for an operation, on both servers and for its kinds of nodes; each outcome once."""
    kinds: dict[str, list[str]] = {}
    for key, cells in results.items():
        if key.client == client.name and operation in cells:
            kinds.setdefault(_outcome(client.name, key.kind, operation, cells[operation]), []).append(key.kind)
    if len(kinds) < 2:
        return next(iter(kinds), "-")
    return "<br>".join(f"{'/'.join(sorted(set(names)))}: {text}" for text, names in sorted(kinds.items()))


def _outcome(client: str, kind: str, operation: str, cell: Cell) -> str:
    if cell.outcome == "missing":
        return "-" if operation in APPLICATION or cell.reason == "no such function" else f"client: {cell.reason}"
    if cell.outcome == "wrong":
        return faults.known(client, kind, operation) or "service: see the test"
    return cell.outcome


def main() -> None:
    """The command."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(asyncio.run(run_all(Path(folder)))), "utf-8")


if __name__ == "__main__":
    main()
