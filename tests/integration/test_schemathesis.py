"""Requests that Schemathesis makes from the description at /openapi.json: the running service does what it says."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

import smartfeeds
from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.component import ALICE
from support.web import WebStarter

EXAMPLES = 10

# The rules that JSON Schema cannot express, where a request that the schemas allow may be rejected:
# - Atom, ActivityStreams and XEP-0060 decide whether a payload or an option is acceptable;
# - an entity tag is current or not, and a node stores items or not: both depend on the node;
# - a file of any type becomes an item, but not a document with a whole feed;
# - stringprep (RFC 6122) decides whether a JID is valid, Unicode whether a text is printable; some limits are in bytes;
# - `q=source` and the actions of Micropub need the address of an entry of this service, and some values are dates.
# An unknown suffix belongs to the name of a feed, whose address redirects. For all other operations each request that
# the schemas allow must be accepted.
CONFIGURATION = """
[[operations]]
include-operation-id = ["putItem", "postItem"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "412", "415", "429"]
[[operations]]
include-operation-id = ["createFeed", "configureFeed"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "406", "409", "412", "429"]
[[operations]]
include-operation-id = ["retractItem", "purge", "moveItem"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "412", "429"]
[[operations]]
include-operation-id = ["putMember", "deleteMember", "putSubscription", "deleteSubscription", "postToken"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "429"]
[[operations]]
include-operation-id = ["micropubQuery", "micropub"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", "400", "401", "403", "404", "409", "429"]
[[operations]]
include-operation-id = ["hubRequest", "hubRequestForAny"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "404", "429", "503"]
[[operations]]
include-operation-id = ["lookAtAddress", "followAddress", "followFeed", "retryFollowed"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "406", "409", "429"]
[[operations]]
include-operation-id = "document"
checks.negative_data_rejection.expected-statuses = ["308", "400", "401", "403", "404", "405", "406", "409", "429"]
"""
# A text to search for needs a letter or a digit, and patterns have those of ASCII only. Other texts are not sent, and
# neither are parameters of others, which are ignored.
# Half of the requests that read a feed get the feed of the test, because a generated name has none.
HOOKS = """
import schemathesis
from smartfeeds.core.text import words
from smartfeeds.http.parameter_names import nearest_name

@schemathesis.hook
def filter_query(context, query):
    known = {parameter.name for parameter in context.operation.query}
    if any(name not in known and not nearest_name(name, known) for name in query or ()):
        return False
    text = (query or {}).get("q")
    return not isinstance(text, str) or not text.strip() or bool(words(text))

@schemathesis.hook
def map_path_parameters(context, path_parameters):
    name = (path_parameters or {}).get("name")
    if isinstance(name, str) and len(name) % 2 and context.operation.method == "get":
        return {**path_parameters, "name": "notes"}
    return path_parameters
"""


@pytest.mark.timeout(600)
async def test_schemathesis_finds_nothing(
    start_web: WebStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[design 5] All checks in the phases examples, coverage and fuzzing, with valid and invalid data."""
    monkeypatch.setattr("smartfeeds.http.feeds.Feeds._wait_s", lambda *_values: 0)  # nobody waits for items
    web = await start_web(limits={"publishes_per_s": 1_000_000})
    await web.component.create(ALICE, "notes", access_model="open")
    await web.component.publish(ALICE, "notes", "a")
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    (tmp_path / "hooks.py").write_text(HOOKS)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(tmp_path / "schemathesis.toml")),
        *(
            "run",
            f"{web.origin}/openapi.json",
            "--header",
            f"Authorization: {token}",
            "--no-color",
            "--output-sanitize",
            "false",
        ),
        *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES)),
        *("--continue-on-failure", "--seed", "1", "--generation-deterministic"),
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path}:{Path(smartfeeds.__file__).parents[1]}",
            "SCHEMATHESIS_HOOKS": "hooks",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    report = output.decode()
    cases = re.search(r"(\d+) generated", report)

    assert process.returncode == 0, report
    assert cases is not None and int(cases[1]) > 1_000, report
    assert (await web.get("/readyz")).status == 200
