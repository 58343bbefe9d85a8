"""Fixtures of the tests of the HTTP side: a component with a feed of Alice, and a token for it."""

import pytest
import pytest_asyncio

from smartfeeds.core.token import TokenScope
from support.component import ALICE, own_or_shared
from support.web import Web


@pytest.fixture
def notes(web: Web, request: pytest.FixtureRequest) -> Web:
    """A component with the feed notes of Alice."""
    component: Web = own_or_shared(request, "notes")
    return component


@pytest.fixture
def token(notes: Web, request: pytest.FixtureRequest) -> str:
    """Alice's token for publishing in notes."""
    secret: str = own_or_shared(request, "token")
    return secret


@pytest.fixture
async def own_notes(web: Web) -> Web:
    """The component of the test with the feed notes."""
    await web.component.create(ALICE, "notes")
    return web


@pytest.fixture
async def own_token(own_notes: Web) -> str:
    """Alice's token for the component of the test."""
    from support.bearer import bearer

    return await bearer(own_notes, ALICE, TokenScope.PUBLISH, "notes")


@pytest_asyncio.fixture(loop_scope="module")
async def shared_notes(shared_web: Web) -> Web:
    """The component of the file with the feed notes."""
    await shared_web.component.create(ALICE, "notes")
    return shared_web


@pytest_asyncio.fixture(loop_scope="module")
async def shared_token(shared_notes: Web) -> str:
    """Alice's token for the component of the file."""
    from support.bearer import bearer

    return await bearer(shared_notes, ALICE, TokenScope.PUBLISH, "notes")
