"""The surfaces that users, programs and operators see stay as they are: each is compared with a snapshot.

`SMARTFEEDS_WRITE_SURFACES=1 pytest tests/surfaces` writes the snapshots. Moving code must not change them.
"""

import difflib
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from smartfeeds import __version__
from support.component import Starter
from surfaces.documents import DOCUMENTS
from surfaces.http import RESPONSES
from surfaces.program import PROGRAM
from surfaces.world import World, running_world
from surfaces.xmpp import STANZAS

SNAPSHOTS = Path(__file__).parent / "snapshots"
# Removed from the environment, because the program rejects variables that are no settings.
WRITE = bool(os.environ.pop("SMARTFEEDS_WRITE_SURFACES", ""))
# The name of a snapshot -> what it has.
SURFACES = {**PROGRAM, **DOCUMENTS, **RESPONSES, **STANZAS}
_VERSION = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?!\.?\d)".encode())


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(shared_start: Starter) -> AsyncIterator[World]:
    """The service that the surfaces are read from. They change nothing in it."""
    async with running_world(shared_start) as running:
        yield running


@pytest.mark.parametrize("name", SURFACES)
async def test_surface_is_that_of_the_snapshot(name: str, world: World) -> None:
    content = await SURFACES[name](world)
    current = _VERSION.sub(b"VERSION", content.encode() if isinstance(content, str) else content)
    path = SNAPSHOTS / name
    if WRITE:
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_bytes(current)
    assert path.exists(), f"{path} is missing; SMARTFEEDS_WRITE_SURFACES=1 writes it"
    stored = path.read_bytes()
    if stored != current:
        lines = (text.decode("utf-8", "backslashreplace").splitlines() for text in (stored, current))
        difference = "\n".join(difflib.unified_diff(*lines, f"snapshots/{name}", "current", lineterm=""))
        pytest.fail(
            f"the surface {name} changed; a change of a surface needs a line in CHANGELOG.md and a new snapshot "
            f"(SMARTFEEDS_WRITE_SURFACES=1 pytest tests/surfaces):\n{difference or 'only the ends of lines differ'}",
            pytrace=False,
        )


def test_every_snapshot_is_that_of_a_surface() -> None:
    assert {path.name for path in SNAPSHOTS.iterdir()} == set(SURFACES)
