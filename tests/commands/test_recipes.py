"""docs/recipes.md: shell, PHP and Python run against a service; YAML and settings are read as their programs do."""

import asyncio
import hashlib
import hmac
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment

from smartfeeds.core.token import TokenScope
from smartfeeds.features.bot.commands import COMMANDS
from smartfeeds.features.webhook.messages import headers_of
from smartfeeds.features.webhook.settings import WebhookSettings
from support.bearer import bearer
from support.component import ALICE
from support.shell import program_in, run_block, run_process
from support.waiting import HANG_S, until
from support.web import Web

PAGE = (Path(__file__).parents[2] / "docs/recipes.md").read_text()
# Stands for WordPress: the plug-in is called for a change of a post, and its request is sent.
WORDPRESS = """<?php
class WP_Post { public $ID = 7, $post_type = 'post', $post_title = 'Über uns & so', $post_content = '<p>Words</p>'; }
function add_action($hook, $call, $priority, $count) {
    assert($hook === 'transition_post_status' && $count === 3);
    global $action; $action = $call;
}
function apply_filters($hook, $text) { assert($hook === 'the_content'); return $text; }
function get_permalink($post) { return "https://blog.example/?p={$post->ID}"; }
function wp_remote_request($url, $options) {
    $headers = '';
    foreach ($options['headers'] as $name => $value) $headers .= "$name: $value\\r\\n";
    $url = str_replace('https://feeds.example.org', getenv('FEEDS'), $url);
    file_get_contents($url, false, stream_context_create(['http' => [
        'method' => $options['method'], 'header' => $headers, 'content' => (string) $options['body']]]));
}
define('SMARTFEEDS_TOKEN', getenv('TOKEN'));
require 'smartfeeds.php';
$post = new WP_Post;
if ($argv[1] === 'page') { $post->post_type = 'page'; $argv[1] = 'publish'; }
$action($argv[1], $argv[2], $post);
"""


def blocks(kind: str) -> list[str]:
    """The blocks of a kind, such as `sh http`."""
    return re.findall(rf"(?ms)^```{kind}\n(.*?)^```$", PAGE)


def block(kind: str) -> str:
    (text,) = blocks(kind)
    return text


def read_yaml(text: str) -> Any:
    """With the tag of Home Assistant."""
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("!secret", lambda _loader, node: f"secret {node.value}")
    return yaml.load(text, loader)


@pytest.fixture
async def news(web: Web) -> tuple[Web, str]:
    """A service with the feed news, and a token for it."""
    await web.component.create(ALICE, "news", access_model="open")
    return web, (await bearer(web, ALICE, TokenScope.PUBLISH, "news")).removeprefix("Bearer ")


async def titles(web: Web) -> list[str]:
    page = (await web.get("/feeds/news/?timeout=0")).json
    return [item["title"] for item in page["items"] if not item.get("deleted")]


async def test_shell_commands_publish_and_repeat_nothing(news: tuple[Web, str], tmp_path: Path) -> None:
    """All of the page in one shell, twice. What `PUT` sends again is no new version."""
    web, token = news
    script = "\n".join(blocks("sh http"))
    for expected in (["Backup failed", "Spring"], ["Backup failed", "Spring", "Backup failed"]):
        status, output = await run_process(
            ["bash", "-euxo", "pipefail", "-c", script], tmp_path, FEEDS=web.origin, TOKEN=token
        )
        assert status == 0, output
        assert await titles(web) == expected


async def test_stream_shows_the_new_entries_of_a_category(news: tuple[Web, str], tmp_path: Path) -> None:
    web, token = news
    loop = await asyncio.create_subprocess_exec(
        "bash", "-c", block("sh stream"),
        cwd=tmp_path, env={"PATH": os.environ["PATH"], "FEEDS": web.origin},
        stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert loop.stdout is not None
    try:
        await until(
            lambda: web.component.app.site is not None and web.component.app.site.feeds.waiting.held, "the stream"
        )
        script = blocks("sh http")[0] + 'notify "Another" other "Words"\nnotify "Second" backup "Words"\n'
        environment = {"FEEDS": web.origin, "TOKEN": token}
        assert (await run_process(["bash", "-euo", "pipefail", "-c", script], tmp_path, **environment))[0] == 0
        async with asyncio.timeout(HANG_S):
            assert [await loop.stdout.readline() for _ in range(2)] == [b"Backup failed\n", b"Second\n"]
    finally:
        os.killpg(loop.pid, 15)
        await loop.wait()


async def test_wordpress_publishes_edits_and_deletes(news: tuple[Web, str], tmp_path: Path) -> None:
    web, token = news
    (tmp_path / "smartfeeds.php").write_text(block("php"))
    (tmp_path / "wordpress.php").write_text(WORDPRESS)

    async def change(new: str, old: str) -> list[str]:
        command = ["php", "-d", "zend.assertions=1", "wordpress.php", new, old]
        status, output = await run_process(command, tmp_path, FEEDS=web.origin, TOKEN=token)
        assert (status, output) == (0, "")
        return await titles(web)

    assert await change("draft", "auto-draft") == []
    assert await change("page", "draft") == []
    assert await change("publish", "draft") == ["Über uns & so"]
    (item,) = (await web.get("/feeds/news/?timeout=0")).json["items"]
    assert (item["id"], item["object"]["url"]) == ("wordpress-7", "https://blog.example/?p=7")
    assert item["object"]["content"] == "<p>Words</p>"
    assert await change("publish", "publish") == ["Über uns & so"]
    assert await change("trash", "publish") == []


def test_webhook_is_read_as_the_page_describes_it() -> None:
    (section,) = tomllib.loads(block("toml webhook"))["webhook"]
    webhook = WebhookSettings(**section).to_webhook()
    message = json.loads(block("json message"))
    rows = re.findall(r"(?m)^\| `(\w+)` \| ", PAGE)

    assert (webhook.node, webhook.filter) == (message["feed"], message["filter"])
    assert webhook.name == message["webhook"]
    assert set(rows) == set(WebhookSettings.model_fields)


def test_signature_of_the_page_is_that_of_the_service() -> None:
    names: dict[str, Callable[[bytes, str], bool]] = {}
    exec(compile(block("python signature"), "receiver.py", "exec"), names)  # type: ignore[arg-type]
    signature = headers_of(b"{}", "change me")["X-Hub-Signature-256"]

    assert signature == "sha256=" + hmac.new(b"change me", b"{}", hashlib.sha256).hexdigest()
    assert names["is_genuine"](b"{}", signature)
    assert not names["is_genuine"](b"{} ", signature)
    assert not names["is_genuine"](b"{}", headers_of(b"{}", "another")["X-Hub-Signature-256"])


async def test_home_assistant_reads_and_publishes(news: tuple[Web, str]) -> None:
    """The request that its integration sends, with the templates filled in; then what its sensor reads."""
    web, token = news
    configuration = read_yaml(block("yaml configuration"))
    command = configuration["rest_command"]["publish_news"]
    (sensor,) = configuration["sensor"]
    assert command["headers"] == {"Authorization": "secret smartfeeds", "Title": "{{ title }}"}
    answer = await web.ask(
        command["method"].upper(),
        command["url"].removeprefix("https://feeds.example.org"),
        b"It rains",
        Content_Type=command["content_type"],
        Authorization=f"Bearer {token}",
        Title="Weather",
    )
    assert answer.status == 201
    written = (await web.get("/feeds/news/?until=&max=1")).json["items"][0]
    await web.component.publish(ALICE, "news", "newest")
    page = (await web.get(sensor["resource"].removeprefix("https://feeds.example.org"))).json

    assert [item["id"] for item in page["items"]] == ["newest"]
    templates = Environment(autoescape=True)  # as Home Assistant, without its own filters
    assert templates.from_string(sensor["value_template"]).render(value_json=page) == "newest"
    (automation,) = read_yaml(block("yaml automation"))["automation"]
    assert set(automation) == {"alias", "triggers", "actions"}
    assert automation["triggers"][0]["allowed_methods"] == ["POST"]
    data, events = automation["actions"][0]["data"], ({"items": page["items"]}, {"items": [written]})
    texts = [
        [templates.from_string(data[key]).render(trigger={"json": event}) for key in ("title", "message")]
        for event in events
    ]
    assert texts == [["newest", ""], ["Weather", "It rains"]]


def test_community_is_created(tmp_path: Path) -> None:
    environment = program_in(tmp_path / "bin")
    run_block("smartfeeds init feeds.example.org\n" + block("sh community"), tmp_path, environment)
    shown = json.loads(run_block("smartfeeds node show garden --json", tmp_path, environment))

    assert shown["options"]["title"] == "The garden"
    assert shown["options"]["publish_model"] == "subscribers"


def test_commands_of_a_room_exist() -> None:
    words = [line.split()[1] for line in block("text room").splitlines()]
    names = {name for command in COMMANDS for name in (command.name, *chain(*command.aliases.values()))}

    assert words and set(words) <= names


def test_tasks_of_ansible_have_one_module_each_and_run_what_exists(tmp_path: Path) -> None:
    """The second run of a task changes nothing, by the exit code that the page names."""
    tasks = yaml.safe_load(block("yaml tasks"))
    modules = [[key for key in task if key.startswith("ansible.builtin.")] for task in tasks]
    environment = program_in(tmp_path / "bin")
    arguments = [task["ansible.builtin.command"]["argv"] for task in tasks if "ansible.builtin.command" in task]
    local = [[word.replace("/etc/smartfeeds/", "").replace("/var/lib/", "./") for word in argv] for argv in arguments]
    (tmp_path / "smartfeeds").mkdir()

    def run(argv: list[str]) -> int:
        return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode

    assert all(task["name"] for task in tasks) and all(len(keys) == 1 for keys in modules)
    assert [run(argv) for argv in local] == [0, 0]
    assert run(local[1]) == 6
