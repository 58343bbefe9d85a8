"""Libervia's command line, with a backend and a message bus of its own.

It runs with the system's Python, which has the packages of Debian. `libervia-cli` speaks to the backend over D-Bus, and
the backend is the client. Notifications are signals of the backend.
"""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from protocol import ATOM, NOTE, UPDATED, Events, Missing, serve

PROFILE = "driver"
PS = "http://jabber.org/protocol/pubsub"
DATA = "jabber:x:data"


def payload(kind: str, title: str) -> str:
    """An Atom entry or a note."""
    if kind == "note":
        return f"<note xmlns='{NOTE}'>{escape(title)}</note>"
    return f"<entry xmlns='{ATOM}'><title>{escape(title)}</title><updated>{UPDATED}</updated></entry>"


def read_item(item: ET.Element) -> dict[str, str]:
    """The id of an item and its title."""
    note = item.findtext(f".//{{{NOTE}}}note")
    title = item.findtext(f".//{{{ATOM}}}title") if note is None else note
    return {"id": item.get("id", ""), "title": title or ""}


class CommandProcess:
    """Runs `libervia-cli` in children of a process that has already imported it, which takes most of its time."""

    def __init__(self) -> None:
        own, other = socket.socketpair()
        if os.fork() == 0:
            own.close()
            _run_commands(other.makefile("rw"))
            os._exit(0)
        other.close()
        self._socket = own
        self._turn = asyncio.Lock()

    async def run(self, arguments: tuple[str, ...], text: str, environment: dict[str, str]) -> tuple[int, str, str]:
        """The exit code of a command, and what it prints."""
        async with self._turn:
            if not hasattr(self, "_reader"):
                self._reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=1 << 24)
            self._writer.write(json.dumps([arguments, text, environment]).encode() + b"\n")
            answer: tuple[int, str, str] = tuple(json.loads(await self._reader.readline()))
            return answer


def _run_commands(requests: TextIO) -> None:
    sys.path.insert(0, "/usr/share/libervia")  # where Debian has the modules
    from sat_frontends.jp.base import LiberviaCli

    for line in requests:
        arguments, text, environment = json.loads(line)
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            given.write(text.encode())
            given.seek(0)
            if (child := os.fork()) == 0:
                for number, file in enumerate((given, out, errors)):
                    os.dup2(file.fileno(), number)
                os.environ.update(environment)
                sys.argv = ["libervia-cli", *arguments]
                code = 1
                try:
                    LiberviaCli.run()
                    code = 0
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else int(end.code is not None)
                except BaseException:  # noqa: BLE001 - shown as the errors of the command
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            errors.seek(0)
            answer = code, out.read().decode(), errors.read().decode()
        requests.write(json.dumps(answer) + "\n")
        requests.flush()


class Driver:
    """Calls of the test as commands."""

    def __init__(self, folder: Path, commands_process: "CommandProcess") -> None:
        self.folder = folder
        self.commands_process = commands_process
        self.processes: list[asyncio.subprocess.Process] = []
        self.events = Events()
        self._pipes: list[asyncio.Future[None]] = []
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}

    async def login(self, jid: str, password: str, host: str, port: int, service: str, **_ways: Any) -> str:
        self.service = service
        bus = await self._start("dbus-daemon", "--session", "--print-address=1", "--nofork", "--nopidfile")
        assert bus.stdout is not None
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = (await bus.stdout.readline()).decode().strip()
        backend = await self._start("/usr/bin/python3", "/usr/bin/libervia-backend", "foreground")
        assert backend.stdout is not None
        while b"Backend is ready" not in (line := await backend.stdout.readline()):
            if not line:
                raise RuntimeError("the backend of Libervia has ended")
        self._log = asyncio.ensure_future(backend.stdout.read())
        await self._run(
            "profile", "create", PROFILE, "--password", "", "--jid", f"{jid}/libervia", "--xmpp-password", password
        )
        for name, value in (("check_certificate", "false"), ("Force server", host), ("Force port", str(port))):
            await self.run("param", "set", "Connection", name, value)
        await self.run("profile", "connect", "--connect")
        return f"{jid}/libervia"

    async def _start(self, *command: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=self.environment,
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    async def stop(self) -> None:
        for process in reversed(self.processes):
            if process.returncode is None:
                process.terminate()
                await process.wait()

    async def _run(self, *arguments: str, text: str = "") -> str:
        code, out, errors = await self.commands_process.run(arguments, text, self.environment)
        if code:
            raise RuntimeError(f"{' '.join(arguments)}: {out} {errors}"[-600:])
        return out

    async def run(self, *arguments: str, text: str = "") -> str:
        """The output of a command of the profile."""
        return await self._run(*arguments, "--profile", PROFILE, text=text)

    async def pubsub(self, *command: str, node: str, more: tuple[str, ...] = (), text: str = "") -> str:
        """The output of a command for a node."""
        return await self.run("pubsub", *command, "--service", self.service, "--node", node, *more, text=text)

    async def info(self) -> dict[str, Any]:
        answer = json.loads(await self.run("info", "disco", self.service, "--type", "infos", "--output", "json"))
        return {"identities": [one[:2] for one in answer["identities"]], "features": answer["features"]}

    async def nodes(self) -> list[str]:
        command = ("info", "disco", self.service, "--type", "items", "--no-cache", "--output", "json")
        return [node for _jid, node, _name in json.loads(await self.run(*command))["items"]]

    def _fields(self, values: dict[str, str]) -> tuple[str, ...]:
        return tuple(part for name, value in values.items() for part in ("--field", name, value))

    async def create(self, node: str, config: dict[str, str]) -> str:
        return (await self.pubsub("node", "create", node=node, more=self._fields(config))).strip()

    async def publish(self, node: str, item_id: str, title: str, kind: str, options: Any = None) -> str:
        more = ("--quiet", *self._fields(options or {}), item_id)
        return (await self.pubsub("set", node=node, more=more, text=payload(kind, title))).strip()

    async def _get(self, node: str, *more: str) -> list[dict[str, str]]:
        text = await self.pubsub("get", node=node, more=("--no-cache", *more, "--output", "xml-raw"))
        return [read_item(item) for item in ET.fromstring(f"<items>{text}</items>")]

    async def items(self, node: str, max_items: int | None = None) -> list[dict[str, str]]:
        return await self._get(node, *(("--max-items", str(max_items)) if max_items else ()))

    async def item(self, node: str, item_id: str) -> list[dict[str, str]]:
        return await self._get(node, "--item", item_id)

    async def walk(self, node: str, size: int, back: bool) -> list[list[str]]:
        """Pages by the ids of items, as a person types them."""
        pages: list[list[str]] = []
        position: tuple[str, ...] = ("--before", "") if back else ("--index", "0")
        while items := await self._get(node, "--max", str(size), *position):
            pages.append([item["id"] for item in items])
            position = ("--before", pages[-1][0]) if back else ("--after", pages[-1][-1])
        return pages

    async def subscribe(self, node: str) -> str:
        await self._watch(node)
        await self.pubsub("subscribe", node=node)
        return "subscribed"

    async def subscriptions(self) -> list[list[str]]:
        answer = json.loads(await self.pubsub("subscriptions", node="", more=("--output", "json")))
        return [[one["node"], one["state"]] for one in answer]

    async def unsubscribe(self, node: str) -> None:
        await self.pubsub("unsubscribe", node=node)

    async def retract(self, node: str, item_id: str) -> None:
        await self.pubsub("delete", node=node, more=("--force", "--item", item_id))

    async def purge(self, node: str) -> None:
        await self.pubsub("node", "purge", node=node, more=("--force",))

    async def delete(self, node: str) -> None:
        await self.pubsub("node", "delete", node=node, more=("--force",))

    async def config(self, node: str) -> dict[str, Any]:
        answer = json.loads(await self.pubsub("node", "info", node=node, more=("--output", "json")))
        return {f"pubsub#{name}": value for name, value in answer.items()}

    async def configure(self, node: str, values: dict[str, str]) -> None:
        await self.pubsub("node", "set", node=node, more=self._fields(values))

    async def affiliations(self, node: str) -> dict[str, str]:
        answer: dict[str, str] = json.loads(
            await self.pubsub("node", "affiliations", "get", node=node, more=("--output", "json"))
        )
        return answer

    async def affiliate(self, node: str, jid: str, affiliation: str) -> None:
        await self.pubsub("node", "affiliations", "set", node=node, more=("--affiliation", jid, affiliation))

    async def own_affiliations(self) -> list[list[str]]:
        answer = json.loads(await self.pubsub("affiliations", node="", more=("--output", "json")))
        return [list(one) for one in answer.items()]

    async def subscribers(self, node: str) -> dict[str, str]:
        answer: dict[str, str] = json.loads(
            await self.pubsub("node", "subscriptions", "get", node=node, more=("--output", "json"))
        )
        return answer

    async def commands(self) -> list[str]:
        await self.run("ad-hoc", "list", "--jid", self.service)
        return []

    async def event(self, kind: str, **wanted: Any) -> dict[str, Any]:
        if kind != "item":
            raise Missing("hooks are for items only")
        return await self.events.wait(kind=kind, **wanted)

    async def _watch(self, node: str) -> None:
        """Makes the backend run a hook for each item of a notification. The hook writes to a pipe."""
        fifo, script = self.folder / f"{len(self._pipes)}.fifo", self.folder / f"{len(self._pipes)}.py"
        os.mkfifo(fifo)
        script.write_text(f"def hook(host, client, item):\n    print(item.toXml(), file=open({str(fifo)!r}, 'w'))\n")
        reader = asyncio.StreamReader(limit=1 << 22)
        pipe = os.fdopen(os.open(fifo, os.O_RDWR))  # with a writer of its own, so that it does not end
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._pipes.append(asyncio.ensure_future(self._read_items(node, reader)))
        await self.pubsub("hook", "create", node=node, more=("--type", "python_file", str(script)))

    async def _read_items(self, node: str, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            await self.events.add({"kind": "item", "node": node, **read_item(ET.fromstring(line))})

    async def comment(self, node: str, item_id: str, title: str) -> list[dict[str, str]]:
        """A blog post with comments, and one comment in the node that Libervia creates for it."""
        more = ("--title", title, "--comments", "--syntax", "xhtml")
        await self.run("blog", "set", "--service", self.service, "--node", node, *more, text="<p>Text</p>")
        items = json.loads(
            await self.run("blog", "get", "--service", self.service, "--node", node, "--no-cache", "--output", "json")
        )
        [post] = [one for one in items[0] if one.get("title") == title]
        comments = post["comments"][0]
        for text in ("A comment", "♥"):
            command = ("blog", "set", "--service", comments["service"], "--node", comments["node"])
            await self.run(*command, "--title", text, "--syntax", "xhtml", text=f"<p>{text}</p>")
        return await self._get(comments["node"])

    async def react(self, node: str, item_id: str) -> list[str]:
        """Attaches a reaction to an item (XEP-0470). Returns the reactions that the item has then."""
        await self.pubsub("attachments", "set", node=node, more=("--item", item_id, "--reactions", "♥"))
        more = ("--item", item_id, "--output", "json")
        attachments = json.loads(await self.pubsub("attachments", "get", node=node, more=more))
        return [reaction for one in attachments for reaction in one["reactions"]["reactions"]]

    async def submit(self, node: str, title: str) -> list[str]:
        """Sets the template of a form, and submits the form once (XEP-0346). Returns what was submitted."""
        name = f"fdp/submitted/{node}"
        field = "<field var='title' type='text-single' label='Title'/>"
        await self.pubsub("node", "schema", "set", node=node, more=(f"<x xmlns='{DATA}' type='form'>{field}</x>",))
        template = await self.pubsub("node", "schema", "get", node=node)
        if "Title" not in template:
            raise ValueError(template)
        await self.pubsub("node", "create", node=name)
        await self.run("list", "set", "--service", self.service, "--node", name, "--field", "title", title)
        text = await self.pubsub("get", node=name, more=("--no-cache", "--output", "xml-raw"))
        values = ET.fromstring(f"<items>{text}</items>").iter(f"{{{DATA}}}field")
        return [one.findtext(f"{{{DATA}}}value", "") for one in values if one.get("var") == "title"]

    async def search(self, node: str, words: str) -> list[dict[str, str]]:
        """Searches for words in a node by a filter of its archive (XEP-0442)."""
        return await self._get(node, "--filter", "fulltext", words)


async def main(commands_process: CommandProcess) -> None:
    """Serves until standard input ends."""
    folder = Path(tempfile.mkdtemp(prefix="libervia-"))
    driver = Driver(folder, commands_process)
    try:
        await serve(driver)
    finally:
        await driver.stop()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(CommandProcess()))
