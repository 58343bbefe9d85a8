"""The commands for tokens through the whole component (XEP-0050)."""

import pytest

from smartfeeds.core.token import ALL_FEEDS, Token
from smartfeeds.features.accounts import listing
from smartfeeds.features.accounts.tokens import authenticate
from support.component import ALICE, BOB, Component, Starter, bare, fields
from support.dialog import Dialog, condition, lines, notes, status, table

ADMIN = "root@example.org/desk"


@pytest.fixture
async def service(start: Starter) -> Component:
    """A component with an admin, and with a node of Alice."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")
    return component


async def token_with(service: Component, text: str) -> Token:
    """The token that HTTP accepts for a text."""
    return await service.app.service.read(lambda tx, context: authenticate(tx, context, text))


async def token_of(service: Component, user: str, **values: str) -> str:
    """The text of a new token."""
    dialog = Dialog(service, user, "add-token")
    await dialog.begin()
    answer = await dialog.go(**values)
    assert status(answer) == "completed"
    return fields(answer)["secret"][0]


async def test_token_is_created_listed_and_revoked(service: Component) -> None:
    """It is a token of HTTP; its owner sees and revokes it, the secret is shown once."""
    text = await token_of(service, ALICE, feed="tea", scope="publish", expires="90d", label="my bot")
    token = await token_with(service, text)
    rows = table(await Dialog(service, ALICE, "list-tokens").begin())
    dialog = Dialog(service, ALICE, "revoke-token")
    await dialog.begin()
    done = await dialog.go()

    assert (token.jid, token.feed, token.scope.text, token.label) == (bare(ALICE), "tea", "publish", "my bot")
    assert [row["id"] for row in rows] == [token.token_id]
    assert rows[0]["expires"] == "2026-04-01T00:00:00Z"
    assert text not in str(rows)
    assert notes(done) == [f"Revoked the token {token.token_id}, which acted as alice@example.org."]
    assert notes(await Dialog(service, ALICE, "list-tokens").begin()) == ["There is no token."]
    assert notes(await Dialog(service, ALICE, "revoke-token").begin()) == ["There is no token."]


@pytest.mark.parametrize(("jid", "feed"), [(BOB, "tea"), (ALICE, ALL_FEEDS), (ALICE, "milk"), (ALICE, "none")])
async def test_owner_gets_tokens_for_its_own_jid_and_nodes_only(service: Component, jid: str, feed: str) -> None:
    await service.create(BOB, "milk")
    dialog = Dialog(service, ALICE, "add-token")
    await dialog.begin()

    assert condition(await dialog.go(jid=bare(jid), feed=feed)) == "forbidden"


async def test_admin_gets_tokens_for_everybody_and_sees_all(service: Component) -> None:
    await token_of(service, ADMIN, jid="carol@elsewhere.example", feed=ALL_FEEDS, scope="admin")
    dialog = Dialog(service, ADMIN, "add-token")
    await dialog.begin()
    assert lines(await dialog.go(feed="later")) == [
        "The node later does not exist yet. The token works after it is created."
    ]
    await token_of(service, ALICE, feed="tea")

    rows = table(await Dialog(service, ADMIN, "list-tokens").begin())
    assert {row["jid"] for row in rows} == {"carol@elsewhere.example", bare(ADMIN), bare(ALICE)}


async def test_token_of_somebody_else_cannot_be_revoked(service: Component) -> None:
    await service.create(BOB, "milk")
    text = await token_of(service, ALICE, feed="tea")
    await token_of(service, BOB, feed="milk")
    dialog = Dialog(service, BOB, "revoke-token")
    await dialog.begin()

    assert condition(await dialog.go(token=text.split("_")[1])) == "item-not-found"
    assert (await token_with(service, text)).jid == bare(ALICE)


async def test_number_of_tokens_of_an_owner_is_bounded(service: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "TOKENS_PER_JID", 2)
    for _ in range(2):
        await token_of(service, ALICE, feed="tea")
    dialog = Dialog(service, ALICE, "add-token")
    await dialog.begin()

    assert condition(await dialog.go(feed="tea")) == "policy-violation"
