"""What several tests of the HTTP side begin with."""

import pytest

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
