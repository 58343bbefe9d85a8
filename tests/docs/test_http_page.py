"""docs/http.md: its commands run against a service, its proxy lets everything through, its tables hold."""

import json
import re
from pathlib import Path

import pytest

from smartfeeds.app.config import SECTIONS
from smartfeeds.app.site import feed_forms
from smartfeeds.core.token import TokenScope
from smartfeeds.core.view import PARAMETERS
from smartfeeds.features.authoring import posts
from smartfeeds.features.authoring.post_fields import FIELDS
from smartfeeds.http.http_errors import STATUSES
from smartfeeds.http.queries import MAX_QUERY_BYTES
from support.bearer import bearer
from support.component import ALICE
from support.routes import document
from support.shell import run_process
from support.web import Web

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
BLOCK = re.compile(r"^```sh http\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def filled(web: Web) -> None:
    """The feed news, with the items that the page talks of."""
    await web.component.create(ALICE, "news", access_model="open")
    for item_id in ("first", "second", "hello"):
        await web.component.publish(ALICE, "news", item_id)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text()


async def test_commands_run_one_after_the_other(web: Web, page: str, tmp_path: Path) -> None:
    """[SF-053] [SF-056] As they stand, in one shell."""
    await filled(web)
    token = (await bearer(web, ALICE, TokenScope.ADMIN)).removeprefix("Bearer ")
    script = "\n".join(BLOCK.findall(page))
    assert script.count("curl") > 15
    status, said = await run_process(
        ["bash", "-euxo", "pipefail", "-c", script], tmp_path, FEEDS=web.origin, TOKEN=token
    )
    assert status == 0, said
    assert "We are open" in said and "Closed today" in said


async def test_example_of_a_description_is_that_of_the_service(web: Web, page: str) -> None:
    """[SF-112] Each member, and those that are written out with their values."""
    await filled(web)
    about = (await web.get("/about/news/?order=created")).json
    block = page.partition("tee about.json")[2].partition("```json\n")[2].partition("```")[0]
    example = json.loads(
        block.replace("127.0.0.1:8280", f"127.0.0.1:{web.port}").replace(", ... ", "").replace(" ... ", "")
    )
    assert set(example) == set(about)
    for name, value in example.items():
        assert about[name] == value or {**about[name], **value} == about[name], name


def test_tables_have_every_form_parameter_and_status(page: str) -> None:
    """Nothing is left out that a program would be told."""
    assert set(re.findall(r"(?m)^\| `\.(\w+)` \|", page)) == set(feed_forms().suffixes)
    assert {form.accept_types[0] for form in feed_forms().of_feed} <= set(re.findall(r"`(\w+/[\w.+-]+)` \|", page))
    errors = page.partition("## Errors")[2].partition("## Limits")[0]
    shown = {int(status) for row in re.findall(r"(?m)^\| ([\d, ]+) \|", errors) for status in row.split(", ")}
    paths = document()["paths"].values()
    told = {
        int(status)
        for item in paths
        for one in item.values()
        if isinstance(one, dict) and "responses" in one
        for status in one["responses"]
    }
    assert {status for status in told if status >= 400} | {status.value for status in STATUSES.values()} <= shown
    views = page.partition("| view parameter |")[2].partition("\n\n")[0]
    assert dict(re.findall(r"(?m)^\| `([\w-]+)` \| (.*) \|$", views)) == PARAMETERS
    for section, key in re.findall(r"`(\w+)\.(\w+)`", page):
        assert key in SECTIONS[section].model_fields, f"{section}.{key}"
    assert f"{MAX_QUERY_BYTES:,} bytes" in page


def test_rules_of_micropub_are_those_of_its_tests(page: str) -> None:
    """Each row of the table has a test that names it."""
    tests = (PAGE.parents[1] / "tests" / "features" / "authoring" / "test_micropub.py").read_text()
    assert set(re.findall(r"(?m)^\| (MP-\d\d) \|", page)) == set(re.findall(r"\[(MP-\d\d)\]", tests))


def test_tables_of_publishing_are_those_of_the_code(page: str) -> None:
    """Media types and fields."""
    part = page.partition("**Media types.**")[2].partition("**PUT and DELETE.**")[0]
    types, fields = part.split("**Fields.**")
    assert {*filter(None, posts._READERS), *feed_forms().item_readers} <= set(re.findall(r"`(\w+/[\w.+-]+)`", types))
    rows = dict(re.findall(r"(?m)^\| `(\w+)` \| (.*) \| .* \|$", fields))
    assert set(rows) == {field.headers[0] for field in FIELDS.values()}
    for field in FIELDS.values():
        assert set(re.findall(r"`(\w+)`", rows[field.headers[0]])) <= set(field.names)
