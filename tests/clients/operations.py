"""What is tried with each client: the rows of docs/clients.md.

Each operation leaves the node as the next one needs it, whether the client succeeds or not.
"""

import contextlib
import itertools
from collections.abc import Awaitable, Callable

from clients import people
from clients.driver import MissingError
from clients.run import FRIEND, PS, Run, expect, expect_in, title_of


async def disco(run: Run) -> None:
    info = await run.client.call("info")
    expect_in(["pubsub", "service"], [list(one) for one in info["identities"]])
    expect_in(f"{PS}#publish", info["features"])


async def create(run: Run) -> None:
    try:
        expect(await run.call("create", config=run.kind.config), run.node)
        await run.prepare_item("probe")
        await run.set(f"<retract node='{run.node}'><item id='probe'/></retract>")
    except Exception:
        await run.prepare_node()
        raise


async def list_nodes(run: Run) -> None:
    expect_in(run.node, await run.client.call("nodes"))


async def publish(run: Run) -> None:
    try:
        expect(await run.publish("p1"), "p1")
    except Exception:
        await run.prepare_item("p1")
        raise
    finally:
        for item in ("p2", "p3", "p4"):
            await run.prepare_item(item)


async def publish_options(run: Run) -> None:
    try:
        expect(await run.publish("p5", options=run.kind.options), "p5")
    except Exception:
        await run.prepare_item("p5")
        raise


async def retrieve_all(run: Run) -> None:
    expect(await run.ids(), ["p1", "p2", "p3", "p4", "p5"])


async def retrieve_by_id(run: Run) -> None:
    expect(run.checked(await run.call("item", item_id="p2")), ["p2"])


async def retrieve_newest(run: Run) -> None:
    expect(await run.ids(max_items=2), ["p4", "p5"])


async def page_forward(run: Run) -> None:
    pages = await run.call("walk", size=2, back=False)
    expect(sorted(map(len, pages)), [1, 2, 2])
    expect(list(itertools.chain(*pages)), ["p1", "p2", "p3", "p4", "p5"])


async def page_back(run: Run) -> None:
    expect(await run.call("walk", size=2, back=True), [["p4", "p5"], ["p2", "p3"], ["p1"]])


async def subscribe(run: Run) -> None:
    try:
        expect(await run.call("subscribe"), "subscribed")
    except Exception:
        await run.set(f"<subscribe node='{run.node}' jid='{run.raw.bare}'/>")
        raise


async def notification(run: Run) -> None:
    await run.prepare_item("p6")
    event = await run.call("event", kind="item", id="p6")
    expect(event["title"], title_of("p6"))


async def subscriptions(run: Run) -> None:
    expect_in([run.node, "subscribed"], await run.client.call("subscriptions"))


async def subscribers(run: Run) -> None:
    expect_in([run.raw.bare, "subscribed"], [list(one) for one in (await run.call("subscribers")).items()])


async def retract(run: Run) -> None:
    await run.call("retract", item_id="p1")
    with contextlib.suppress(MissingError):
        await run.call("event", kind="retract", id="p1")
    await gone(run, "p1")


async def gone(run: Run, item: str) -> None:
    """Raises Wrong unless the item cannot be retrieved any more."""
    answer = await run.raw.get(
        run.service, f"<pubsub xmlns='{PS}'><items node='{run.node}'><item id='{item}'/></items></pubsub>"
    )
    expect(answer.findall(f".//{{{PS}}}item"), [])


async def unsubscribe(run: Run) -> None:
    await run.call("unsubscribe")
    answer = await run.raw.get(run.service, f"<pubsub xmlns='{PS}'><subscriptions node='{run.node}'/></pubsub>")
    expect(answer.findall(f".//{{{PS}}}subscription"), [])


async def read_configuration(run: Run) -> None:
    config = await run.call("config")
    expect(config["pubsub#access_model"], run.kind.access_model)


async def write_configuration(run: Run) -> None:
    await run.call("configure", values={"title": "Renamed"})
    answer = await run.raw.get(run.service, f"<pubsub xmlns='{PS}#owner'><configure node='{run.node}'/></pubsub>")
    field_ = answer.find(".//{jabber:x:data}field[@var='pubsub#title']")
    expect(field_ is not None and field_.findtext("{jabber:x:data}value"), "Renamed")


async def read_affiliations(run: Run) -> None:
    expect((await run.call("affiliations")).get(run.raw.bare), "owner")


async def write_affiliations(run: Run) -> None:
    await run.call("affiliate", jid=FRIEND, affiliation="publisher")
    answer = await run.raw.get(run.service, f"<pubsub xmlns='{PS}#owner'><affiliations node='{run.node}'/></pubsub>")
    affiliations = {one.get("jid"): one.get("affiliation") for one in answer.iter(f"{{{PS}#owner}}affiliation")}
    expect(affiliations.get(FRIEND), "publisher")


async def probe(run: Run) -> None:
    await run.call("probe")


async def comment(run: Run) -> None:
    items = await run.call("comment", item_id="post", title=title_of("post"))
    expect([item["title"] for item in items], ["A comment", "♥"])


async def avatar(run: Run) -> None:
    expect(await run.call("avatar"), ["https://example.org/a.jpg"])


async def gallery(run: Run) -> None:
    await run.call("gallery")


async def react(run: Run) -> None:
    expect(await run.call("react", item_id="p2"), ["♥"])


async def submit(run: Run) -> None:
    expect(await run.call("submit", title=title_of("form")), [title_of("form")])


async def search(run: Run) -> None:
    expect(run.checked(await run.call("search", words="p3")), ["p3"])


async def pending(run: Run) -> None:
    expect(await run.call("pending"), "completed")


async def purge(run: Run) -> None:
    await run.call("purge")
    await gone(run, "p2")


async def delete(run: Run) -> None:
    await run.call("delete")
    answer = await run.raw.get(run.service, f"<pubsub xmlns='{PS}'><items node='{run.node}'/></pubsub>")
    expect(answer.get("type"), "error")


async def list_commands(run: Run) -> None:
    await run.client.call("commands")


Operation = Callable[[Run], Awaitable[None]]

OPERATIONS: dict[str, Operation] = {
    "discover the service": disco,
    "create a node": create,
    "list the nodes": list_nodes,
    "publish": publish,
    "publish with publish-options": publish_options,
    "retrieve all items": retrieve_all,
    "retrieve an item by id": retrieve_by_id,
    "retrieve the newest items (`max_items`)": retrieve_newest,
    "page forward (result sets)": page_forward,
    "page back (result sets)": page_back,
    "subscribe": subscribe,
    "receive a notification": notification,
    "list own subscriptions": subscriptions,
    "list subscribers": subscribers,
    "retract": retract,
    "unsubscribe": unsubscribe,
    "read the configuration": read_configuration,
    "change the configuration": write_configuration,
    "read affiliations": read_affiliations,
    "change affiliations": write_affiliations,
    "follow another user's node": people.follow,
    "request a subscription (`authorize`)": people.ask,
    "decide requests by their forms": people.decide,
    "approve a request by an affiliation": people.admit,
    "be refused by a closed node (`whitelist`)": people.stay_outside,
    "be refused as an outcast": people.be_outcast,
    "list own affiliations": people.own_affiliations,
    "publish to another user's node": people.write,
    "receive another user's comment": people.hear,
    "find out what is allowed": probe,
    "post, comment and like": comment,
    "react to an item (XEP-0470)": react,
    "submit a form (XEP-0346)": submit,
    "search (XEP-0442)": search,
    "set an avatar for a node": avatar,
    "make a gallery": gallery,
    "ask for pending subscribers": pending,
    "purge": purge,
    "delete the node": delete,
    "list ad-hoc commands": list_commands,
}


# Operations of applications, for these kinds of nodes. Libraries leave them to the application.
APPLICATION = {
    "find out what is allowed": {"feed"},
    "post, comment and like": {"feed"},
    "react to an item (XEP-0470)": {"feed"},
    "submit a form (XEP-0346)": {"generic"},
    "search (XEP-0442)": {"feed"},
    "set an avatar for a node": {"feed", "generic"},
    "make a gallery": {"feed"},
    "ask for pending subscribers": {"generic"},
}
