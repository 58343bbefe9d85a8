"""The whole component on a real server, in this process, for integration tests."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from smartfeeds.app.config import load
from smartfeeds.app.lifecycle import App
from smartfeeds.app.opening import open_service
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import OpenMode
from support.servers import SECRET, TestServer
from support.waiting import wait_for


def write_config(folder: Path, server: TestServer, domain: str, **sections: dict[str, object]) -> Path:
    """A configuration file for a component of this name beside the server."""
    tables: dict[str, dict[str, object]] = {
        "component": {"jid": domain, "secret": SECRET, "port": server.component_port},
        "store": {"url": f"sqlite:///{folder / 'feeds.db'}"},
        "http": {"listen": ""},
        "pubsub": {"creators": ["localhost"]},
    }
    for name, values in sections.items():
        tables.setdefault(name, {}).update(values)
    text = "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for name, values in tables.items()
    )
    path = folder / "smartfeeds.toml"
    path.write_text(text)
    return path


@contextlib.asynccontextmanager
async def stored_service(
    config: Path = Path("smartfeeds.toml"),
    *,
    mode: OpenMode = OpenMode.SERVE,
    clock: Callable[[], int] | None = None,
) -> AsyncIterator[FeedService]:
    """The service over the database of a configuration file, as a command of the operator has it."""
    service = open_service(load(config), lambda _nodes: None, clock, mode)
    await service.store.open()
    try:
        yield service
    finally:
        await service.store.close()


@contextlib.asynccontextmanager
async def running(path: Path) -> AsyncIterator[App]:
    """The component of a configuration file, online."""
    app = App(load(path))
    await app.start()
    try:
        await wait_for(app.online.wait(), "the connection to the XMPP server")
        yield app
    finally:
        await app.stop()
