"""The demonstrations, as a new user runs them."""

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.features.demo.share import FeedCopy, SharedItem, SharedVersion, Titles, verdict
from smartfeeds.local.process import is_listening

DEADLINE_S = 55.0

Start = Callable[..., Awaitable[Any]]
KEPT = SharedItem(
    "<entry><id/></entry>",
    "<sync id='tea'/>",
    False,
    (SharedVersion("Tea", 2, "a", "1"), SharedVersion("Milk", 1, "b", "2")),
)


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts `smartfeeds` with these arguments in an empty folder."""
    processes: list[asyncio.subprocess.Process] = []
    package = str(Path(__file__).parents[4] / "component")

    async def begin(*arguments: str, cwd: Path = tmp_path) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-m", "smartfeeds", *arguments,
            cwd=cwd, env={**os.environ, "PYTHONPATH": package, "PYTHONUNBUFFERED": "1"},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def output(start: Start, *arguments: str) -> tuple[int, str]:
    process = await start(*arguments)
    out, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    assert not err, err.decode()
    return process.returncode, out.decode()


async def scene(process: Any) -> str:
    """What a demo serve says until it is ready."""
    lines: list[str] = []
    async with asyncio.timeout(DEADLINE_S):
        while not lines or "Ctrl-C stops everything" not in lines[-1]:
            line = (await process.stdout.readline()).decode()
            assert line, (await process.stderr.read()).decode()
            lines.append(line)
    return "".join(lines)


def told(text: str) -> tuple[int, str, str, str, list[int]]:
    """(items, how many new, account, password, ports) of what demo serve says."""
    found = re.search(r"planet +\((\d+) items, (.*?)\)", text)
    account = re.search(r"account +(\S+) +password (\S+)", text)
    assert found
    assert account
    ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+) for", text)]
    return int(found[1]), found[2], account[1], account[2], ports


async def test_gap_is_found_and_closed_and_the_mirror_is_the_feed(start: Start) -> None:
    """[SF-044] [SF-048] [SF-049] [SF-051] Lost notifications, a killed component, a reader away."""
    code, text = await output(start, "demo", "gap")

    mirror = re.search(r"mirror (\d+ items, sha256 \w+)", text)
    feed = re.search(r"feed   (\d+ items, sha256 \w+)", text)
    assert mirror
    assert feed
    assert (code, mirror[1]) == (0, feed[1])
    assert mirror[1].startswith("13 items")
    assert "They are the same." in text
    # What Bob met in both his runs: every change came to him once, and not all of them were pulled.
    assert re.search(r"; 16 changes, [1-9]\d* push(es)?, [1-9]\d* pulls, [2-9] gaps found, [2-9] healed, ", text)
    assert re.search(r"pull   since \S+: 4 items\n", text)


async def test_feed_edited_at_two_services_while_apart_is_the_same_at_both(start: Start, root: Path) -> None:
    """[FS-062] [FS-068] [FS-070] Same winner, conflicts kept, settled at one side; as docs/mirrors.md shows it."""
    code, text = await output(start, "demo", "share")

    told = (root / "docs/mirrors.md").read_text().split("<!-- transcript: smartfeeds demo share -->\n```text\n")[1]
    assert masked(text) == masked(told.split("```")[0])
    assert code == 0
    for digests in (re.findall(r"feeds-a .* sha256 (\w+)", text), re.findall(r"feeds-b .* sha256 (\w+)", text)):
        assert len(set(digests)) == 3
    assert re.findall(r"feeds-a  (.*)", text) == re.findall(r"feeds-b  (.*)", text)


def masked(text: str) -> str:
    """A transcript without its digests, which have the time in them."""
    return re.sub(r"sha256 [0-9a-f]{16}", "sha256 ...", text)


@pytest.mark.parametrize(
    ("there", "wrong"),
    [
        ({}, "THEY DIFFER"),
        ({"tea": KEPT._replace(sync="<sync/>")}, "THEY DIFFER"),
        ({"tea": KEPT._replace(payload="<entry/>")}, "THEY DIFFER"),
        ({"tea": KEPT}, ""),
    ],
)
def test_share_says_when_services_do_not_agree(there: dict[str, SharedItem], wrong: str) -> None:
    """Items, contents and histories count."""
    assert verdict([FeedCopy({"tea": KEPT}), FeedCopy(there)], {"tea": (("Tea", 2), ("Milk", 1))}) == wrong


@pytest.mark.parametrize("titles", [{}, {"tea": (("Tea", 2),)}, {"tea": (("Milk", 2), ("Milk", 1))}])
def test_share_says_when_services_agree_on_something_else(titles: Titles) -> None:
    """A conflict that is gone, a wrong winner, an item too many."""
    assert "NOT WHAT WAS WRITTEN" in verdict([FeedCopy({"tea": KEPT}), FeedCopy({"tea": KEPT})], titles)


async def test_serve_fills_a_feed_and_a_second_start_finds_it_again(start: Start, tmp_path: Path) -> None:
    first = await start("demo", "serve")
    text = await scene(first)
    items, news, account, password, ports = told(text)
    assert (await output(start, "demo", "publish", "Hello"))[1].startswith("Published ")
    assert await output(start, "status", "--config", ".run/smartfeeds.toml") == (0, "online\n")
    first.send_signal(signal.SIGINT)
    rest = (await asyncio.wait_for(first.communicate(), DEADLINE_S))[0].decode()

    assert items > 50
    assert news == f"{items} new"
    assert first.returncode == 0
    assert "the next start finds it again" in rest
    assert not any(is_listening(port) for port in ports)

    second = await start("demo", "serve")
    text_again = await scene(second)
    again = told(text_again)
    follow = await start(
        "follow", "xmpp:feeds.localhost?;node=planet", "--mirror", "--until-caught-up",
        "--jid", account, "--password", password, "--server", f"127.0.0.1:{ports[0]}", "--plaintext",
    )  # fmt: skip
    printed = (await asyncio.wait_for(follow.communicate(), DEADLINE_S))[0].decode().splitlines()

    assert again == (items + 1, "all there from the last start", account, password, ports)
    changes = [line for line in printed if not line.startswith("proof")]
    assert len(changes) == items + 1
    assert "Hello" in changes[-1]
    assert printed[-1].startswith("proof    in step with planet?order=modified")
    assert all((tmp_path / ".run" / name).stat().st_mode & 0o077 == 0 for name in ("scene.json", "token"))
    # A script with the line of the first start works.
    (line,), (line_again,) = [re.findall(r"curl -u .*", printed) for printed in (text, text_again)]
    assert line == line_again
    assert json.loads(await run(line.replace("curl ", "curl -sS ")))["title"] == "Hello, world"


async def test_serve_prints_a_line_that_publishes(start: Start, tmp_path: Path) -> None:
    """The line works as it is printed. `demo publish` needs no folder below the one of the demonstration."""
    process = await start("demo", "serve")
    (line,) = re.findall(r"curl -u .*", await scene(process))
    assert json.loads(await run(line.replace("curl ", "curl -sS ")))["title"] == "Hello, world"
    (tmp_path / "deep").mkdir()
    published = await start("demo", "publish", "Hello", cwd=tmp_path / "deep")
    assert (await asyncio.wait_for(published.communicate(), DEADLINE_S))[0].startswith(b"Published ")


async def test_second_serve_in_a_folder_names_the_first_and_leaves_it_alone(start: Start, tmp_path: Path) -> None:
    """It ended Prosody under the first one, and hung."""
    first = await start("demo", "serve")
    text = await scene(first)
    *_, ports = told(text)
    page = re.search(r"web page +(\S+)", text)
    assert page is not None

    second = await start("demo", "serve")
    out, err = await asyncio.wait_for(second.communicate(), DEADLINE_S)

    assert (second.returncode, out) == (4, b"")
    assert err.decode() == (
        f"smartfeeds: {tmp_path}/.run: process {first.pid} (smartfeeds demo serve, {page[1]}) is running here already; "
        "use it, stop it with Ctrl-C, or choose another --folder\n"
    )
    assert first.returncode is None and all(is_listening(port) for port in ports)


async def test_serve_after_a_kill_takes_over_what_was_left(start: Start) -> None:
    """Prosody of the killed demonstration still runs, on the same ports."""
    first = await start("demo", "serve")
    *_, ports = told(await scene(first))
    first.kill()
    await first.wait()
    assert all(is_listening(port) for port in ports)

    second = await start("demo", "serve")

    assert told(await scene(second))[4] == ports
    second.send_signal(signal.SIGTERM)
    await second.communicate()
    assert second.returncode == 0 and not any(is_listening(port) for port in ports)


async def test_publish_without_a_running_demonstration_says_how_to_start_one(start: Start, tmp_path: Path) -> None:
    # Without a folder the command would find the demonstration that `make run` left beside the virtual environment.
    process = await start("demo", "publish", "Hello", "--folder", str(tmp_path))
    _, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)

    assert process.returncode == 3
    assert b"make run" in err


async def test_readme_commands_of_http_do_what_they_say(start: Start, root: Path, tmp_path: Path) -> None:
    """The block of the README, pasted as it stands, against the feed that `make run` shows."""
    process = await start("demo", "serve")
    page = re.search(r"web page +(http://127\.0\.0\.1:\d+)", await scene(process))
    assert page
    section = (root / "README.md").read_text().split("## The same feed over HTTP")[1].split("```")[1]
    *lines, stream = section.removeprefix("sh\n").strip().replace("http://127.0.0.1:15280", page[1]).splitlines()
    assert "?category=" in section
    printed = await run(f'cd {tmp_path}; curl() {{ command curl -sS "$@" && echo; }}; ' + "\n".join(lines))

    first, since, category, rss = printed.split("\n", 3)
    pages = [json.loads(first), json.loads(since), json.loads(category)]
    assert [len(one["items"]) for one in pages[:2]] == [2, 2]
    assert not {item["id"] for item in pages[0]["items"]} & {item["id"] for item in pages[1]["items"]}
    tags = [[tag["displayName"] for tag in item["object"]["tags"]] for item in pages[2]["items"]]
    assert len(tags) > 3 and all("harbour" in names for names in tags)
    assert "next" in pages[0]
    assert rss.startswith('<?xml version="1.0"')
    assert "<rss" in rss[:200]
    assert (await run(f"feed={page[1]}/feeds/planet; {stream}")).startswith("retry: ")
    browser = await run(f"curl -sS -H 'Accept: text/html' {page[1]}/feeds/planet/")
    assert "<title>Planet Tidemark" in browser


@pytest.mark.needs("bot", "polling")
async def test_readme_blog_arrives_on_the_phone(start: Start, root: Path) -> None:
    """The lines of the README, with the ports that `demo serve` prints: the entries that are there, and a new one. An
    answer to that one leads to the blog."""
    text = await scene(await start("demo", "serve"))
    blog = re.search(r"blog +http://127\.0\.0\.1:(\d+)/", text)
    assert blog
    section = (root / "README.md").read_text().split("## A blog on your phone")[1].split("\n## ")[0]
    (show,), lines = [block.splitlines() for block in re.findall(r"(?s)```sh\n(.*?)\n```", section)]
    phone = await start(*shlex.split(show)[1:])
    assert b"bob@localhost is online" in await asyncio.wait_for(phone.stdout.readline(), DEADLINE_S)
    phone.stdin.write(b"list\n")
    for line in lines:
        program, *arguments = shlex.split(line.replace("15281", blog[1]))
        assert program == ".venv/bin/smartfeeds"
        process = await start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
        assert process.returncode == 0, (out, err)

    seen = ""
    async with asyncio.timeout(2 * DEADLINE_S):  # the blog is polled once a minute at most
        while not all(title in seen for title in ("Storm warning", "Planet Tidemark", "First snow on the quay")):
            line = (await phone.stdout.readline()).decode()
            assert line, seen
            seen += line
    assert seen.startswith("feeds.localhost: ") and re.search("(?m)^ {17}- Storm warning", seen)

    async def until_shown(words: str) -> None:
        async with asyncio.timeout(2 * DEADLINE_S):
            while words not in (line := (await phone.stdout.readline()).decode()):
                assert line

    # The first entries come together, as a list. A later one has a message of its own.
    assert (await output(start, "demo", "post", "Low water"))[0] == 0
    await until_shown(f"http://127.0.0.1:{blog[1]}/posts/4")
    phone.stdin.write(b"re How deep is it, Harbour?\n")
    await until_shown(f"answered at their own address: http://127.0.0.1:{blog[1]}/posts/4")


@pytest.mark.needs("bot")
async def test_readme_answer_is_published(start: Start, root: Path) -> None:
    """Bob follows the feed, and his phone answers the message that arrived last."""
    section = (root / "README.md").read_text().split("## A blog on your phone")[1].split("\n## ")[0]
    follow, publish, answer = re.findall(
        r"`(subscribe planet|\.venv/bin/smartfeeds demo publish [^`]*|re [^`]*)`", section
    )
    text = await scene(await start("demo", "serve"))
    page = re.search(r"web page +(\S+)", text)
    assert page
    phone = await start("demo", "phone")

    async def until_shown(words: bytes) -> None:
        while words not in (line := await asyncio.wait_for(phone.stdout.readline(), DEADLINE_S)):
            assert line

    async def answers() -> list[Any]:
        items = json.loads(await run(f"curl -sS '{page[1]}?until=&max=3'"))["items"]
        return [item for item in items if item["object"].get("content", item["title"]).endswith("Hello, Alice")]

    await until_shown(b"bob@localhost is online")
    phone.stdin.write(f"{follow}\n".encode())
    await until_shown(b"You follow")
    published = await start(*shlex.split(publish)[1:])
    assert await published.wait() == 0
    await until_shown(b"Hello, world")
    phone.stdin.write(f"{answer}\n".encode())
    async with asyncio.timeout(DEADLINE_S):
        while not (found := await answers()):
            pass
    assert "inReplyTo" in json.dumps(found)


async def test_readme_bot_prints_what_is_published(start: Start, root: Path, tmp_path: Path) -> None:
    """The steps of the README, the program as it stands, with the account that `make run` prints."""
    *_, account, password, ports = told(await scene(await start("demo", "serve")))
    (program,) = re.findall(r"(?s)```python\n(.*?)```", (root / "README.md").read_text())
    (tmp_path / "bot.py").write_text(program)
    bot = await asyncio.create_subprocess_exec(
        sys.executable, "bot.py", account, password, f"127.0.0.1:{ports[0]}",
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root / "component")},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert bot.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            line = asyncio.ensure_future(bot.stdout.readline())
            while not line.done():  # an entry that is published before the bot follows is not new for it
                await output(start, "demo", "publish", "Hello, world")
            assert await line == b"new Hello, world\n"
    finally:
        bot.terminate()
        await bot.wait()


async def run(command: str) -> str:
    """What a command prints; a stream has its first lines, then it is ended."""
    process = await asyncio.create_subprocess_shell(
        command, executable="/bin/bash", stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        if "event-stream" in command:
            line = await process.stdout.readline()
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()
            return line.decode()
        text = (await process.communicate())[0].decode()
    assert process.returncode == 0
    return text
