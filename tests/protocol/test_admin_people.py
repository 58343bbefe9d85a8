"""The commands for affiliations, subscriptions and tokens through the whole component (XEP-0050; issue 11, 3)."""

import pytest

from smartfeeds.core.token import ALL_FEEDS
from smartfeeds.features.accounts import listing as admin_tokens
from support.component import ALICE, BOB, CAROL, Component, Starter, bare, fields
from support.dialog import Dialog, actions, condition, lines, notes, status, table

ADMIN = "root@example.org/desk"


@pytest.fixture
async def service(start: Starter) -> Component:
    """A component with an admin, and with a node of Alice."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")
    return component


async def affiliations(service: Component, user: str = ALICE) -> dict[str, str]:
    """The affiliations of the node, as the command lists them."""
    dialog = Dialog(service, user, "list-affiliations")
    await dialog.begin()
    return {row["jid"]: row["affiliation"] for row in table(await dialog.go(node="tea"))}


async def test_affiliations_are_changed_and_listed(service: Component) -> None:
    dialog = Dialog(service, ALICE, "set-affiliations")
    await dialog.begin()
    done = await dialog.go(node="tea", jids=["bob@example.org", "Carol@Example.org"], affiliation="publisher")

    assert notes(done) == ["Changed 2 JIDs of tea."]
    assert await affiliations(service) == {
        "alice@example.org": "owner",
        "bob@example.org": "publisher",
        "carol@example.org": "publisher",
    }
    assert await affiliations(service, ADMIN) == await affiliations(service)


async def test_last_owner_stays(service: Component) -> None:
    """The note names the entry that the service refused."""
    dialog = Dialog(service, ALICE, "set-affiliations")
    await dialog.begin()
    done = await dialog.go(node="tea", jids=[bare(ALICE)], affiliation="none")

    assert notes(done) == ["Not changed: alice@example.org stays owner."]
    assert await affiliations(service) == {"alice@example.org": "owner"}


async def test_long_list_of_a_node_is_paged_and_carries_the_node(service: Component) -> None:
    """The node is in a hidden field of every page. Back on the first page leads to the choice of the node."""
    for start in range(0, 120, 60):
        dialog = Dialog(service, ALICE, "set-affiliations")
        await dialog.begin()
        jids = [f"m{number:03}@example.org" for number in range(start, start + 60)]
        await dialog.go(node="tea", jids=jids, affiliation="member")
    dialog = Dialog(service, ALICE, "list-affiliations")
    await dialog.begin()

    first = await dialog.go(node="tea")
    second = await dialog.go("next")
    back = await dialog.go("prev")
    choice = await dialog.go("prev")

    assert (len(lines(first)), len(lines(second))) == (50, 50)
    assert lines(back) == lines(first)
    assert actions(first) == ("next", ["prev", "next", "complete"])
    assert fields(choice)["node"] == ["tea"] and lines(choice) == []


async def test_subscriptions_are_listed_approved_and_ended(service: Component) -> None:
    await service.configure(ALICE, "tea", access_model="authorize")
    assert await service.subscribe(CAROL, "tea") == "pending"
    await service.events(bare(CAROL))
    dialog = Dialog(service, ALICE, "set-subscriptions")
    await dialog.begin()
    approved = await dialog.go(node="tea", jids=[bare(CAROL)], state="subscribed")
    listing = Dialog(service, ALICE, "list-subscriptions")
    await listing.begin()
    rows = table(await listing.go(node="tea"))
    dialog = Dialog(service, ALICE, "set-subscriptions")
    await dialog.begin()
    ended = await dialog.go(node="tea", jids=[bare(CAROL)], state="none")
    listing = Dialog(service, ALICE, "list-subscriptions")
    await listing.begin()

    assert notes(approved) == notes(ended) == ["Changed 1 JID of tea."]
    assert rows == [{"jid": bare(CAROL), "state": "subscribed"}]
    assert notes(await listing.go(node="tea")) == ["There is no subscription."]
    assert len(await service.events(bare(CAROL))) == 2


@pytest.mark.parametrize("node", ["list-affiliations", "list-subscriptions"])
async def test_lists_of_a_foreign_node_are_forbidden(service: Component, node: str) -> None:
    await service.create(BOB, "milk")
    dialog = Dialog(service, BOB, node)
    await dialog.begin()

    assert condition(await dialog.go(node="tea")) == "forbidden"


# Tokens


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
    token = await service.app._authenticate(text)
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
    assert (await service.app._authenticate(text)).jid == bare(ALICE)


async def test_number_of_tokens_of_an_owner_is_bounded(service: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_tokens, "TOKENS_PER_JID", 2)
    for _ in range(2):
        await token_of(service, ALICE, feed="tea")
    dialog = Dialog(service, ALICE, "add-token")
    await dialog.begin()

    assert condition(await dialog.go(feed="tea")) == "policy-violation"
