"""Event streams for tokens that are revoked."""

import asyncio
import json
from typing import Any

from smartfeeds.core.token import Token, TokenScope
from smartfeeds.features.accounts.bearer import digest_of, write_token
from smartfeeds.features.accounts.tokens import add_token, revoke_token
from support.component import ALICE, bare
from support.event_streams import listen
from support.web import Web

SECRET = "s" * 43
TOKEN_ID = "0123456789ab"
BEARER = f"Bearer {write_token(TOKEN_ID, SECRET)}"


async def add_closed_feed(web: Web) -> None:
    """Creates a feed that only its members read, and a token of one of them."""
    await web.component.create(ALICE, "closed", access_model="whitelist")
    token = Token(TOKEN_ID, digest_of(SECRET), bare(ALICE), TokenScope.READ, "closed", "", 0)
    await web.component.app.service.write(lambda tx, context: add_token(tx, context, token, None))


async def test_stream_ends_with_the_token_that_opened_it(start_web: Any) -> None:
    """[SF-111]: a revoked token lets nobody go on listening."""
    web = await start_web(http={"heartbeat_s": 0.02})
    await add_closed_feed(web)
    stream = await listen(web, "/feeds/closed/", Authorization=BEARER)
    await stream.block()
    await web.component.app.service.write(lambda tx, context: revoke_token(tx, context, TOKEN_ID))
    event = await stream.event()
    assert (event.name, json.loads(event.data)["status"]) == ("error", 401)


async def test_revoked_token_gets_no_more_items(start_web: Any) -> None:
    """[SF-111]: neither on a stream that is busy and has no heartbeats, nor by a pull that is held."""
    web = await start_web(http={"heartbeat_s": 3_600})
    await add_closed_feed(web)
    stream = await listen(web, "/feeds/closed/", Authorization=BEARER)
    held = asyncio.create_task(web.get("/feeds/closed/", Authorization=BEARER))
    await web.holding(2)
    await web.component.app.service.write(lambda tx, context: revoke_token(tx, context, TOKEN_ID))
    await web.component.publish(ALICE, "closed", "secret")
    event = await stream.event()
    assert (event.name, json.loads(event.data)["status"]) == ("error", 401)
    assert (await held).status == 401
