"""Commands that need a server, on real ones, each as a process of its own."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.console import Exit
from smartfeeds.local.process import HOST, free_port
from support.client import ClientFactory
from support.listener import Listener
from support.servers import SECRET, TestServer

DEADLINE_S = 50.0
ENTRY = '<entry xmlns="http://www.w3.org/2005/Atom"><title>{}</title></entry>'
PUBSUB = "http://jabber.org/protocol/pubsub"

Command = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with nothing of ours in it but the package."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SMARTFEEDS_")}
    package = str(Path(__file__).parents[2] / "component")
    return {**kept, "PYTHONPATH": package, "HOME": str(tmp_path)}


@pytest.fixture
async def start(tmp_path: Path, environment: dict[str, str]) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """Starts a command in a folder of its own; what still runs at the end is ended."""
    processes: list[asyncio.subprocess.Process] = []

    async def begin(*arguments: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-m", "smartfeeds", *arguments,
            cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.fixture
def command(start: Callable[..., Awaitable[Any]]) -> Command:
    """Runs a command to its end: exit code, output, errors."""

    async def run(*arguments: str) -> tuple[int, str, str]:
        process = await start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
        return process.returncode, out.decode(), err.decode()

    return run


class Network:
    """A way to a port that can be cut: what it carries is nothing to it. An async context manager."""

    def __init__(self, far_port: int) -> None:
        self._far_port = far_port
        self._writers: list[asyncio.StreamWriter] = []
        self._ways: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Network":
        self._listener = Listener(self._accept)
        self.port = self._listener.port
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._listener.close()
        self.cut()
        await asyncio.gather(*self._ways, return_exceptions=True)

    def cut(self) -> None:
        """Ends every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(HOST, self._far_port)
        self._writers += [writer, far_writer]
        self._ways += [asyncio.create_task(self._carry(reader, far_writer))]
        self._ways += [asyncio.create_task(self._carry(far_reader, writer))]

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()


def configure(folder: Path, server: TestServer, **changes: Any) -> str:
    """Writes a configuration for a component name that no other test has; returns the name."""
    name = str(changes.get("jid", server.take_name()))
    secret, port = changes.get("secret", SECRET), changes.get("port", server.component_port)
    path = folder / "smartfeeds.toml"
    path.touch(mode=0o600)
    path.write_text(
        f'[component]\njid = "{name}"\nsecret = "{secret}"\nport = {port}\n'
        '[http]\nlisten = ""\n[link]\nretry_first_s = 0.1\n'
    )
    return name


def is_online(status: Path) -> bool:
    return status.exists() and json.loads(status.read_text())["online"] is True


async def online(command: Command, status: Path) -> None:
    """Waits until the status file says that the server accepts the service; the command says so too."""
    async with asyncio.timeout(DEADLINE_S):
        while not is_online(status):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    assert (await command("status", "status.json"))[:2] == (Exit.OK, "online\n")


def findings(text: str) -> dict[str, dict[str, str]]:
    return {finding["check"]: finding for finding in json.loads(text)}


async def test_doctor_on_a_good_server_finds_nothing_to_fix(
    tmp_path: Path, server: TestServer, command: Command
) -> None:
    configure(tmp_path, server)

    code, out, err = await command("doctor", "--json")

    found = findings(out)
    assert (code, err) == (Exit.OK, "")
    # HTTP is off in these tests, and nobody can look up the name.
    assert {name for name, one in found.items() if one["state"] != "ok"} == {"http", "dns"}
    assert server.software.lower() in found["server"]["found"].lower()
    assert found["clock"]["found"] == "agrees with the clock of localhost"
    if server.software == "Prosody":
        assert "520,000 bytes pass" in found["stanza size"]["found"]
        assert "conflict" in found["second process"]["found"]
    else:
        assert "2,000,000 bytes pass" in found["stanza size"]["found"]
        assert "accepted" in found["second process"]["found"]


async def test_doctor_wrong_secret_says_so(tmp_path: Path, server: TestServer, command: Command) -> None:
    configure(tmp_path, server, secret="not-this-one")

    code, out, _ = await command("doctor", "--json")

    assert code == Exit.FAILED
    assert "secret" in findings(out)["link"]["advice"]
    assert "not-this-one" not in out


async def test_doctor_unknown_name_says_so(tmp_path: Path, prosody: TestServer, command: Command) -> None:
    configure(tmp_path, prosody, jid="nobody.localhost")

    code, out, _ = await command("doctor")

    assert code == Exit.FAILED
    assert "no component of this name" in " ".join(out.split())


async def test_doctor_client_port_says_so(tmp_path: Path, server: TestServer, command: Command) -> None:
    configure(tmp_path, server, port=server.client_port)

    code, out, _ = await command("doctor", "--json")

    link = findings(out)["link"]
    assert code == Exit.FAILED
    assert f"127.0.0.1:{server.client_port}: this is the port for clients (c2s)" in link["found"]
    assert link["advice"] == "set component.port to the port for components, usually 5347"


async def test_doctor_no_server_says_so(tmp_path: Path, prosody: TestServer, command: Command) -> None:
    configure(tmp_path, prosody, port=free_port())

    code, out, _ = await command("doctor")

    assert code == Exit.FAILED
    assert "is the server running" in " ".join(out.split())


async def test_doctor_pages_above_the_limit_of_the_server_say_what_to_lower(
    tmp_path: Path, prosody: TestServer, command: Command, environment: dict[str, str]
) -> None:
    configure(tmp_path, prosody)
    environment["SMARTFEEDS_COMPONENT__SECRET"] = SECRET
    path = tmp_path / "smartfeeds.toml"
    path.write_text(path.read_text() + "[pubsub]\npage_bytes = 450000\nmax_payload_size_bytes = 380000\n")

    code, out, _ = await command("doctor", "--json")

    assert code == Exit.OK
    assert "520,000 bytes pass" in findings(out)["stanza size"]["found"]


async def test_doctor_store_that_cannot_be_made_says_so(
    tmp_path: Path, prosody: TestServer, command: Command, environment: dict[str, str]
) -> None:
    configure(tmp_path, prosody)
    environment["SMARTFEEDS_STORE__URL"] = "sqlite:///none/feeds.db"

    code, out, _ = await command("doctor", "--json")

    assert code == Exit.FAILED
    assert "does not exist" in findings(out)["store"]["found"]


async def test_doctor_beside_the_running_service_tells_of_it(
    tmp_path: Path, prosody: TestServer, start: Callable[..., Awaitable[Any]], command: Command
) -> None:
    configure(tmp_path, prosody)
    await start("run", "--status", "status.json")
    await online(command, tmp_path / "status.json")

    code, out, _ = await command("doctor", "--json")

    assert code == Exit.OK
    assert "if smartfeeds is running" in findings(out)["link"]["advice"]


async def test_run_wrong_secret_keeps_trying_and_says_why(
    tmp_path: Path, prosody: TestServer, start: Callable[..., Awaitable[Any]]
) -> None:
    configure(tmp_path, prosody, secret="wrong")
    process = await start("run")

    async with asyncio.timeout(DEADLINE_S):
        lines = [await process.stderr.readline()]
        while b"secret" not in lines[-1]:
            lines.append(await process.stderr.readline())
    process.send_signal(signal.SIGTERM)

    assert await asyncio.wait_for(process.wait(), DEADLINE_S) == Exit.OK
    assert not any(b"Traceback" in line for line in lines)


async def test_run_store_that_cannot_be_opened_ends_with_its_code(
    tmp_path: Path, prosody: TestServer, command: Command
) -> None:
    configure(tmp_path, prosody)
    (tmp_path / "smartfeeds.db").write_text("no database at all, but long enough to be looked at" * 50)

    code, _, err = await command("run")

    assert code == Exit.STORE
    assert "not a SQLite database" in err
    assert "Traceback" not in err


async def test_follow_prints_everything_then_what_comes_and_goes_on_after_a_restart(
    tmp_path: Path,
    server: TestServer,
    client: ClientFactory,
    start: Callable[..., Awaitable[Any]],
    command: Command,
) -> None:
    """[SF-045] [SF-047] [SF-049] The follower on the command line, with a stored cursor."""
    name = configure(tmp_path, server)
    await start("run", "--status", "status.json")
    await online(command, tmp_path / "status.json")
    alice = await client(server, "alice")
    account = await asyncio.to_thread(server.server.account, "reader")

    async def publish(number: int) -> None:
        item = f'<item id="i{number}">{ENTRY.format(number)}</item>'
        answer = await alice.set(name, f'<pubsub xmlns="{PUBSUB}"><publish node="n">{item}</publish></pubsub>')
        assert answer.get("type") == "result"

    await alice.set(name, f'<pubsub xmlns="{PUBSUB}"><create node="n"/></pubsub>')
    for number in range(3):
        await publish(number)
    follow = (
        "follow", f"xmpp:{name}?;node=n", "--jid", account.jid, "--password", account.password, "--store", "position",
        "--server", f"127.0.0.1:{server.client_port}", "--plaintext", "--json",
    )  # fmt: skip

    first = await command(*follow, "--mirror", "--until-caught-up")
    running = await start(*follow)

    async def next_line() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await running.stdout.readline())
        return found

    async with asyncio.timeout(DEADLINE_S):
        ready = await next_line()
        await publish(3)
        await publish(4)
        pushed = [await next_line(), await next_line()]
    running.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(running.communicate(), DEADLINE_S)
    await publish(5)
    last = await command(*follow, "--until-caught-up")

    assert (first[0], ids(first[1])) == (Exit.OK, ["i0", "i1", "i2"])
    assert (ready["kind"], ready["total"], ready["in_step"]) == ("proof", 3, True)
    assert [(one["id"], one["title"]) for one in pushed] == [("i3", "3"), ("i4", "4")]
    assert (running.returncode, err) == (Exit.OK, b"")
    proof = json.loads(out)
    assert (proof["kind"], proof["total"], proof["in_step"]) == ("proof", 5, True)
    assert re.fullmatch(r"\d+\.\d+_0_[0-9a-f]{8}", proof["position"])
    assert (last[0], ids(last[1])) == (Exit.OK, ["i5"])


async def test_follower_of_a_generic_node_sees_what_max_items_and_expiry_remove(
    tmp_path: Path,
    server: TestServer,
    client: ClientFactory,
    start: Callable[..., Awaitable[Any]],
    command: Command,
) -> None:
    """[SF-045] [xep-map 73]: by tombstones, because XEP-0060 has no notification for them."""
    name = configure(tmp_path, server)
    await start("run", "--status", "status.json")
    await online(command, tmp_path / "status.json")
    alice = await client(server, "alice")
    account = await asyncio.to_thread(server.server.account, "reader")

    async def ask(kind: str, namespace: str, inner: str) -> Any:
        answer = await getattr(alice, kind)(name, f'<pubsub xmlns="{namespace}">{inner}</pubsub>')
        assert answer.get("type") == "result"
        return answer

    async def publish(number: int) -> None:
        item = f'<item id="i{number}"><n xmlns="urn:example:n">{number}</n></item>'
        await ask("set", PUBSUB, f'<publish node="n">{item}</publish>')

    def options(**fields: str) -> str:
        values = "".join(f"<field var='pubsub#{var}'><value>{value}</value></field>" for var, value in fields.items())
        kind = f"<field var='FORM_TYPE' type='hidden'><value>{PUBSUB}#node_config</value></field>"
        return f"<x xmlns='jabber:x:data' type='submit'>{kind}{values}</x>"

    await ask("set", PUBSUB, f'<create node="n"/><configure>{options(max_items="2")}</configure>')
    for number in range(2):
        await publish(number)
    running = await start(
        "follow", f"xmpp:{name}?;node=n", "--jid", account.jid, "--password", account.password, "--mirror", "--json",
        "--server", f"127.0.0.1:{server.client_port}", "--plaintext",
    )  # fmt: skip

    async def changes(count: int) -> list[tuple[str, str]]:
        lines = [json.loads(await running.stdout.readline()) for _ in range(count)]
        return [(line["kind"], line.get("id", "")) for line in lines]

    async with asyncio.timeout(DEADLINE_S):
        assert set(await changes(3)) == {("new", "i0"), ("new", "i1"), ("proof", "")}
        for number in (2, 3):
            await publish(number)
        assert await changes(4) == [("deleted", "i0"), ("new", "i2"), ("deleted", "i1"), ("new", "i3")]
        await ask("set", f"{PUBSUB}#owner", f'<configure node="n">{options(item_expire="1")}</configure>')
        # The first request after the expiry removes the items.
        while (await ask("get", PUBSUB, '<items node="n"/>')).find(f".//{{{PUBSUB}}}item") is not None:
            pass
        assert await changes(2) == [("deleted", "i2"), ("deleted", "i3")]
    running.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(running.communicate(), DEADLINE_S)

    proof = json.loads(out)
    assert (running.returncode, err) == (Exit.OK, b"")
    assert (proof["kind"], proof["total"], proof["in_step"]) == ("proof", 4, True)


def ids(lines: str) -> list[str]:
    """The items that a follower has printed as JSON."""
    return [one["id"] for one in map(json.loads, lines.splitlines()) if one["kind"] != "proof"]


async def test_follow_wrong_password_ends_with_the_code_of_the_link(prosody: TestServer, command: Command) -> None:
    await asyncio.to_thread(prosody.server.account, "reader")

    code, _, err = await command(
        "follow", "xmpp:feeds.localhost?;node=n", "--jid", "reader@localhost", "--password", "wrong",
        "--server", f"127.0.0.1:{prosody.client_port}", "--plaintext",
    )  # fmt: skip

    assert code == Exit.LINK
    assert "refuses the login" in err


async def test_follow_without_tls_names_the_reason_and_the_option(prosody: TestServer, command: Command) -> None:
    """[SF-084] Nobody looks for a mistake in the password where there is none."""
    account = await asyncio.to_thread(prosody.server.account, "reader-tls")

    code, _, err = await command(
        "follow", "xmpp:feeds.localhost?;node=n", "--jid", account.jid, "--password", account.password,
        "--server", f"127.0.0.1:{prosody.client_port}",
    )  # fmt: skip

    assert code == Exit.LINK
    assert "offers no TLS" in err and "--plaintext" in err


async def test_follow_says_that_the_connection_is_lost_and_that_it_is_back(
    tmp_path: Path,
    prosody: TestServer,
    client: ClientFactory,
    start: Callable[..., Awaitable[Any]],
    command: Command,
) -> None:
    """[SF-049] One line each, on standard error, whatever happens on standard output."""
    name = configure(tmp_path, prosody)
    await start("run", "--status", "status.json")
    await online(command, tmp_path / "status.json")
    alice = await client(prosody, "alice-outage")
    await alice.set(name, f'<pubsub xmlns="{PUBSUB}"><create node="n"/></pubsub>')
    account = await asyncio.to_thread(prosody.server.account, "reader-outage")

    async with Network(prosody.client_port) as network:
        running = await start(
            "follow", f"xmpp:{name}?;node=n", "--jid", account.jid, "--password", account.password,
            "--server", f"127.0.0.1:{network.port}", "--plaintext",
        )  # fmt: skip
        async with asyncio.timeout(DEADLINE_S):
            proof = await running.stdout.readline()
            network.cut()
            said = [await running.stderr.readline()]
            while b"connected again" not in said[-1]:
                said.append(await running.stderr.readline())
        running.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(running.communicate(), DEADLINE_S)

    assert proof.startswith(b"proof") and (running.returncode, err) == (Exit.OK, b"")
    assert [b"connection lost" in line for line in said] == [True] + [False] * (len(said) - 1)


async def test_import_into_a_running_service_reaches_its_followers(
    tmp_path: Path,
    prosody: TestServer,
    client: ClientFactory,
    start: Callable[..., Awaitable[Any]],
    command: Command,
) -> None:
    name = configure(tmp_path, prosody)
    await start("run", "--status", "status.json")
    await online(command, tmp_path / "status.json")
    bob = await client(prosody, "bob")
    assert (await command("node", "create", "n", "--owner", "alice@localhost"))[0] == Exit.OK
    await bob.set(name, f'<pubsub xmlns="{PUBSUB}"><subscribe node="n" jid="{bob.bare}"/></pubsub>')
    entry = "<entry><id>urn:x:1</id><title>One</title><updated>2011-05-09T12:00:00Z</updated></entry>"
    (tmp_path / "news.xml").write_text(
        f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>F</title>{entry}</feed>'
    )

    code, out, _ = await command("import", "news.xml", "--node", "n")
    message = await bob.next_message()

    assert (code, "1 added" in out) == (Exit.OK, True)
    assert message.find(".//{*}item").get("id") == "urn:x:1"
    rows = json.loads((await command("sub", "list", "--json"))[1])
    assert [(row["node"], row["jid"], row["state"]) for row in rows] == [("n", "bob@localhost", "subscribed")]


async def test_conflict_that_is_settled_here_reaches_the_followers_of_the_running_service(
    tmp_path: Path,
    prosody: TestServer,
    client: ClientFactory,
    start: Callable[..., Awaitable[Any]],
    command: Command,
) -> None:
    """[A-59] [A-62] Versions that are merged, and the decision on them, are changes like any other."""
    name = configure(tmp_path, prosody)
    await start("run", "--status", "status.json")
    await online(command, tmp_path / "status.json")
    bob = await client(prosody, "bob-conflicts")
    assert (await command("node", "create", "plans", "--owner", "alice@localhost"))[0] == Exit.OK
    await bob.set(name, f'<pubsub xmlns="{PUBSUB}"><subscribe node="plans" jid="{bob.bare}"/></pubsub>')
    titles = []
    for title, by in (("noon", "a"), ("nine", "b")):
        sync = (
            '<sync xmlns="http://feedsync.org/2007/feedsync" id="i1" updates="1">'
            f'<history sequence="1" when="2026-01-02T10:00:00Z" by="{by}"/></sync>'
        )
        entry = f"<entry><id>urn:x:1</id><title>{title}</title><updated>2011-05-09T12:00:00Z</updated>{sync}</entry>"
        feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>F</title>{entry}</feed>'
        (tmp_path / "plans.xml").write_text(feed)
        assert (await command("import", "plans.xml", "--node", "plans", "--sync"))[0] == Exit.OK
        titles.append((await bob.next_message()).findtext(".//{*}title"))
    (item,) = json.loads((await command("conflicts", "--json"))[1])
    lost = next(one["tag"] for one in item["versions"] if not one["wins"])
    code, out, _ = await command("conflicts", "resolve", "plans", "i1", "--keep", lost)
    titles.append((await bob.next_message()).findtext(".//{*}title"))

    assert (code, titles) == (Exit.OK, ["noon", "nine", "noon"])
    assert "0 conflicts left" in out and json.loads((await command("conflicts", "--json"))[1]) == []
