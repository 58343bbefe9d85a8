"""What several tests of the HTTP side begin with."""

import pytest
import pytest_asyncio

from smartfeeds.core.tokens import TokenScope
from support.bearer import bearer
from support.component import ALICE
from support.web import Web


@pytest.fixture
async def notes(web: Web) -> Web:
    """A component with the feed notes of Alice."""
    await web.component.create(ALICE, "notes")
    return web


@pytest.fixture
async def token(notes: Web) -> str:
    """Alice's token for publishing in notes."""
    return await bearer(notes, ALICE, TokenScope.PUBLISH, "notes")


@pytest_asyncio.fixture(loop_scope="module")
async def shared_notes(shared_web: Web) -> Web:
    """The component of the file with the feed notes of Alice."""
    await shared_web.component.create(ALICE, "notes")
    return shared_web


@pytest_asyncio.fixture(loop_scope="module")
async def shared_token(shared_notes: Web) -> str:
    """Alice's token for publishing in notes."""
    return await bearer(shared_notes, ALICE, TokenScope.PUBLISH, "notes")
