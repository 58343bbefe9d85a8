"""Event streams for tokens that are revoked."""

import asyncio
import json
from typing import Any

from smartfeeds.core.token import Token, TokenScope
from smartfeeds.features.accounts.bearer import digest_of, write_token
from smartfeeds.features.accounts.tokens import add_token, revoke_token
from support.component import ALICE, bare
from support.event_streams import listen

SECRET = "s" * 43
TOKEN_ID = "0123456789ab"


async def test_stream_ends_with_the_token_that_opened_it(start_web: Any) -> None:
    """[SF-111]: a revoked token lets nobody go on listening."""
    web = await start_web(http={"heartbeat_s": 0.02})
    await web.component.create(ALICE, "closed", access_model="whitelist")
    service = web.component.app.service
    token = Token(TOKEN_ID, digest_of(SECRET), bare(ALICE), TokenScope.READ, "closed", "", 0)
    await service.write(lambda tx, context: add_token(tx, context, token, None))
    stream = await listen(web, "/feeds/closed/", Authorization=f"Bearer {write_token(TOKEN_ID, SECRET)}")
    await stream.block()
    await service.write(lambda tx, context: revoke_token(tx, context, TOKEN_ID))
    event = await stream.event()
    assert (event.name, json.loads(event.data)["status"]) == ("error", 401)


async def test_revoked_token_gets_no_more_items(start_web: Any) -> None:
    """[SF-111]: neither on a stream that is busy and has no heartbeats, nor by a pull that is held."""
    web = await start_web(http={"heartbeat_s": 3_600})
    await web.component.create(ALICE, "closed", access_model="whitelist")
    service = web.component.app.service
    token = Token(TOKEN_ID, digest_of(SECRET), bare(ALICE), TokenScope.READ, "closed", "", 0)
    await service.write(lambda tx, context: add_token(tx, context, token, None))
    bearer = f"Bearer {write_token(TOKEN_ID, SECRET)}"
    stream = await listen(web, "/feeds/closed/", Authorization=bearer)
    held = asyncio.create_task(web.get("/feeds/closed/", Authorization=bearer))
    await web.holding(2)
    await service.write(lambda tx, context: revoke_token(tx, context, TOKEN_ID))
    await web.component.publish(ALICE, "closed", "secret")
    event = await stream.event()
    assert (event.name, json.loads(event.data)["status"]) == ("error", 401)
    assert (await held).status == 401
