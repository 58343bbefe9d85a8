"""A sat-pubsub (Libervia Pubsub) beside a test server, over a PostgreSQL database of its own."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from features.moving_in.samples import SAMPLES, load
from support.client import Client
from support.servers import SECRET, TestServer
from support.waiting import until, wait_for

_PYTHON, _TWISTD, _FOLDER = "/usr/bin/python3", "/usr/bin/twistd3", "/usr/share/libervia"


@asynccontextmanager
async def running_sat_pubsub(
    server: TestServer, name: str, url: str, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs it as the component `name` until the end. The database must be empty; its data stays there."""
    load(url, SAMPLES / "sat-pubsub-schema-v10.sql")
    database = urlsplit(url)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": _FOLDER,
        "LIBERVIA_PUBSUB_JID": name,  # its server is the domain above this JID
        "LIBERVIA_PUBSUB_XMPP_PWD": SECRET,
        "LIBERVIA_PUBSUB_RPORT": str(server.component_port),
        "PGHOST": str(database.hostname),
        "PGPORT": str(database.port),
        "PGUSER": str(database.username),
        "PGDATABASE": database.path.removeprefix("/"),
    }
    with (folder / "sat-pubsub.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(_PYTHON, _TWISTD, "--nodaemon", "--pidfile=", "libervia-pubsub"),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await wait_for(process.wait(), "the end of sat-pubsub")


async def wait_for_answers(process: asyncio.subprocess.Process, client: Client, name: str) -> None:
    """Returns when the component answers requests. The server refuses them before that."""
    query = '<query xmlns="http://jabber.org/protocol/disco#info"/>'

    async def answers() -> bool:
        assert process.returncode is None, "sat-pubsub has ended; see sat-pubsub.log in its folder"
        return (await client.get(name, query)).get("type") == "result"

    await until(answers, "sat-pubsub's first answer")
