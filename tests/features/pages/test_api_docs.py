"""`/docs`: the OpenAPI document as a page."""

import re
import shlex
from typing import Any

import pytest
from lxml import html

from smartfeeds.core.urls import DOCS
from smartfeeds.features.pages.api_docs import SchemaText, describe, operations_of
from support.component import ALICE
from support.routes import document
from support.web import Web, WebStarter

SITE = "https://feeds.example.org/news"


def operations() -> dict[str, dict[str, Any]]:
    """Every operation of the document by its id."""
    items = document()["paths"].values()
    return {one["operationId"]: one for item in items for one in item.values() if isinstance(one, dict)}


def texts(element: html.HtmlElement, path: str) -> list[str]:
    """The texts of elements, with single spaces."""
    return [" ".join(one.text_content().split()) for one in element.xpath(path)]


def rows_of(article: html.HtmlElement) -> list[str]:
    """The rows of all tables, their cells joined by spaces."""
    return [" ".join(texts(row, "th | td")) for row in article.xpath(".//tbody/tr")]


@pytest.fixture
async def page(web: Web) -> html.HtmlElement:
    """The page."""
    got = await web.get(DOCS)
    assert (got.status, got.header("Content-Type")) == (200, "text/html; charset=utf-8")
    return html.document_fromstring(got.text)


async def test_page_has_every_operation_with_its_parameters_bodies_and_responses(page: html.HtmlElement) -> None:
    """[SF-112]"""
    for name, operation in operations().items():
        (article,) = page.xpath(f"//article[@id='{name}']")
        head, *_ = texts(article, "../summary/h3")
        rows = rows_of(article)
        assert operation["summary"] in texts(article, "../summary/span")
        for parameter in operation.get("parameters", []):
            assert any(row.startswith(f"{parameter['name']} {parameter['in']}") for row in rows), (head, parameter)
        for status, response in operation["responses"].items():
            (row,) = [row for row in rows if row.startswith(f"{status} {response['description']}")]
            assert all(kind in row for kind in response.get("content", {}))
        for kind in operation.get("requestBody", {}).get("content", {}):
            assert any(item.startswith(kind) for item in texts(article, "ul/li")), (head, kind)


async def test_page_has_every_schema_and_every_link_leads_somewhere(page: html.HtmlElement) -> None:
    for name, schema in document()["components"]["schemas"].items():
        (article,) = page.xpath(f"//article[@id='schema-{name}']")
        assert set(schema.get("properties", {})) <= {row.split()[0].rstrip(",") for row in rows_of(article)}
        assert texts(article, "details/summary") == ["JSON Schema"]
    anchors = [link.removeprefix("#") for link in page.xpath("//@href") if link.startswith("#")]
    assert len(anchors) > 100
    assert set(anchors) <= set(page.xpath("//@id"))


async def test_page_is_folded_and_a_link_leads_into_what_it_opens(page: html.HtmlElement) -> None:
    """Browsers open the details around the target of a link, not those that are the target."""
    assert page.xpath("//main//details[@open]") == []
    targets = {link.removeprefix("#") for link in page.xpath("//main//td//a/@href")}
    assert targets
    for name in targets:
        assert page.xpath(f"//details/*[@id='{name}']"), name


async def test_page_has_no_bound_that_nobody_reaches(page: html.HtmlElement) -> None:
    """The OpenAPI document has it for programs."""
    tables = " ".join(texts(page, "//main//table"))
    assert "at least" in tables
    assert re.findall(r"\d{15,}", tables) == []


async def test_page_loads_nothing_of_others_and_needs_no_script(page: html.HtmlElement) -> None:
    assert page.xpath("//script[not(@src)]") == []
    links = [link for link in page.xpath("//link/@href | //img/@src") if not link.startswith("/")]
    assert links == []


async def test_curl_lines_are_commands_of_a_shell(page: html.HtmlElement, web: Web) -> None:
    """Those without variables lead to their operation."""
    await web.component.create(ALICE, "news")
    for operation in operations_of(document(), web.origin):
        (line,) = texts(page, f"//article[@id='{operation.name}']/pre[@class='curl']")
        program, *arguments, address = shlex.split(line)
        assert program == "curl" and address.startswith(web.origin)
        assert ("-X" in arguments) == (operation.method != "GET")
        assert ("Authorization: Bearer $TOKEN" in arguments) == operation.needs_token
        if operation.method != "GET" or re.search(r"[A-Z]", address.removeprefix(web.origin)):
            continue
        got = await web.get(address.removeprefix(web.origin))
        assert got.status not in (404, 405), line


async def test_page_names_the_public_address(start_web: WebStarter) -> None:
    web = await start_web(http={"base_url": SITE})
    page = html.document_fromstring((await web.get(f"/news{DOCS}")).text)

    assert f"curl {SITE}/feeds/NAME/" in texts(page, "//article[@id='pull']/pre")
    assert page.xpath("//a[text()='openapi.json']/@href") == ["/news/openapi.json"]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"$ref": "#/components/schemas/Item"}, SchemaText("Item", "Item")),
        ({"const": True}, SchemaText("true")),
        ({"enum": ["a", "b"]}, SchemaText('"a", "b"')),
        ({"type": ["string", "integer"]}, SchemaText("string or integer")),
        ({"type": "string", "format": "date-time"}, SchemaText("string, date-time")),
        ({"type": "integer", "minimum": 0, "maximum": 9}, SchemaText("integer, at least 0, at most 9")),
        (
            {"type": "array", "items": {"$ref": "#/components/schemas/Item"}, "minItems": 1},
            SchemaText("array of Item, at least 1 items", "Item"),
        ),
        (
            {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/Item"}]},
            SchemaText("string or Item", "Item"),
        ),
        ({}, SchemaText("any value")),
    ],
)
def test_schema_is_described_in_words(schema: dict[str, Any], text: SchemaText) -> None:
    assert describe(schema) == text
