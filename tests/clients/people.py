"""What is tried with a client and another user: the rows of docs/clients.md for two people.

The other user, the friend, sends plain stanzas.
"""

from clients.driver import ClientError, MissingError
from clients.run import PS, Run, do, expect, expect_in, title_of
from smartfeeds.xmpp.namespaces import EVENT


async def follow(run: Run) -> None:
    """The client follows a node of the friend."""
    node = await run.create(run.friend, f"{run.node}-open")
    expect(await run.client.call("subscribe", node=node), "subscribed")
    await receive(run, node, "f1")


async def receive(run: Run, node: str, item: str) -> None:
    """The friend publishes, and the client is notified."""
    await run.put(run.friend, node, item)
    event = await run.client.call("event", kind="item", node=node, id=item)
    expect(event["title"], title_of(item))


async def ask(run: Run) -> None:
    """The friend approves the request of the client to subscribe."""
    node = await run.create(run.friend, f"{run.node}-asked", access_model="authorize")
    expect(await run.client.call("subscribe", node=node), "pending")
    approval = f"<subscription jid='{run.raw.bare}' subscription='subscribed'/>"
    await do(run.friend, run.service, f"<subscriptions node='{node}'>{approval}</subscriptions>", f"{PS}#owner")
    await receive(run, node, "f2")


async def decide(run: Run) -> None:
    """The client approves a request of the friend, and denies another one, by the forms that it receives."""
    for allow, state in ((True, "subscribed"), (False, "none")):
        node = await run.create(run.raw, f"{run.node}-decided-{state}", access_model="authorize")
        await do(run.friend, run.service, f"<subscribe node='{node}' jid='{run.friend.bare}'/>")
        await run.client.call("decide", node=node, jid=run.friend.bare, allow=allow)
        await expect_state(run, node, state)


async def admit(run: Run) -> None:
    """The client approves a request of the friend by making it a member."""
    node = await run.create(run.raw, f"{run.node}-admitted", access_model="authorize")
    await do(run.friend, run.service, f"<subscribe node='{node}' jid='{run.friend.bare}'/>")
    await run.client.call("affiliate", node=node, jid=run.friend.bare, affiliation="member")
    await expect_state(run, node, "subscribed")


async def expect_state(run: Run, node: str, state: str) -> None:
    """The friend is notified of its subscription."""
    while True:
        subscription = (await run.friend.next_message()).find(f"{{{EVENT}}}event/{{{EVENT}}}subscription")
        if subscription is not None and subscription.get("node") == node:
            expect(subscription.get("subscription"), state)
            return


async def refuse(run: Run, node: str, condition: str) -> None:
    """Neither a subscription nor items for the client, which learns why."""
    known = 0
    for name in ("subscribe", "items"):
        try:
            result = await run.client.call(name, node=node)
        except MissingError:
            continue
        except ClientError as error:
            known += 1
            expect_in(condition, str(error))
        else:
            expect(result, condition)
    if not known:
        raise MissingError("no such function")


async def stay_outside(run: Run) -> None:
    """The node of the friend is for others."""
    await refuse(run, await run.create(run.friend, f"{run.node}-closed", access_model="whitelist"), "not-allowed")


async def be_outcast(run: Run) -> None:
    """The friend has made the client an outcast, which it sees in its list of affiliations."""
    node = await run.create(run.friend, f"{run.node}-outcast")
    outcast = f"<affiliation jid='{run.raw.bare}' affiliation='outcast'/>"
    await do(run.friend, run.service, f"<affiliations node='{node}'>{outcast}</affiliations>", f"{PS}#owner")
    await refuse(run, node, "forbidden")


async def own_affiliations(run: Run) -> None:
    """The node of the client, and the node of the friend where it is an outcast."""
    affiliations = await run.client.call("own_affiliations")
    expect_in([run.node, "owner"], affiliations)
    expect_in([f"{run.node}-outcast", "outcast"], affiliations)


async def write(run: Run) -> None:
    """The client publishes to a node of the friend that is open for all, as the comments of a post are."""
    node = await run.create(run.friend, f"{run.node}-comments", publish_model="open")
    kind = run.kind.payload
    expect(await run.client.call("publish", node=node, item_id="c1", title=title_of("c1"), kind=kind), "c1")
    answer = await run.friend.get(run.service, f"<pubsub xmlns='{PS}'><items node='{node}'/></pubsub>")
    items = [(item.get("id"), item.get("publisher")) for item in answer.iter(f"{{{PS}}}item")]
    expect(items, [("c1", run.raw.bare)])


async def hear(run: Run) -> None:
    """The client is notified of what the friend publishes to an open node of the client."""
    node = await run.create(run.raw, f"{run.node}-heard", publish_model="open")
    expect(await run.client.call("subscribe", node=node), "subscribed")
    await receive(run, node, "c2")
