"""The examples of XEP-0060 section 8, owner use cases, request by request (xep-map E, F)."""

from support.component import OWNER, Refusal, Starter, fields, ok, submit
from support.examples import (
    BERNARDO,
    FORBIDDEN,
    HAMLET,
    NO_NODE,
    NODE,
    NOT_FOUND,
    NOT_PERSISTENT,
    SERVED,
    Example,
    assert_complete,
    config,
    examples,
    form_of,
    own,
    play,
    ps,
    stage,
)

JID = "francisco@denmark.lit"
POLONIUS_JID = "polonius@denmark.lit"
NOT_ACCEPTABLE = Refusal("modify", "not-acceptable")
NO_MODEL = Refusal("modify", "not-acceptable", "unsupported-access-model")
# Of example 137 and 146, without the access model and the fields that the service refuses.
CONFIGURATION = {
    "title": "Princely Musings (Atom)",
    "deliver_notifications": "1",
    "deliver_payloads": "1",
    "persist_items": "1",
    "max_items": "10",
    "item_expire": "604800",
    "publish_model": "publishers",
    "purge_offline": "0",
    "send_last_published_item": "never",
    "presence_based_delivery": "false",
    "notification_type": "headline",
    "notify_config": "0",
    "notify_delete": "0",
    "notify_retract": "0",
    "notify_sub": "0",
    "max_payload_size": "1028",
    "type": "urn:example:e2ee:bundle",
}
XSLT = "http://jabxslt.jabberstudio.org/atom_body.xslt"


def create(node: str, inner: str = "") -> str:
    configuration = f"<configure>{inner}</configure>" if inner else ""
    return ps(f"<create node='{node}'/>{configuration}")


def configure(node: str, inner: str = "") -> str:
    return own(f"<configure node='{node}'>{inner}</configure>")


def purge(node: str) -> str:
    return own(f"<purge node='{node}'/>")


def delete(node: str, inner: str = "") -> str:
    return own(f"<delete node='{node}'>{inner}</delete>")


def subscriptions(node: str, *states: tuple[str, str]) -> str:
    inner = "".join(f"<subscription jid='{jid}' subscription='{state}'/>" for jid, state in states)
    return own(f"<subscriptions node='{node}'>{inner}</subscriptions>")


def affiliations(node: str, *entries: tuple[str, str]) -> str:
    inner = "".join(f"<affiliation jid='{jid}' affiliation='{affiliation}'/>" for jid, affiliation in entries)
    return own(f"<affiliations node='{node}'>{inner}</affiliations>")


def told(node: str, state: str, jid: str = JID) -> dict[str, str]:
    return {jid: f"<subscription node='{node}' jid='{jid}' subscription='{state}'/>"}


REDIRECT = "<redirect uri='xmpp:hamlet@denmark.lit?;node=blog'/>"
CREATION = (
    Example((125,), create("new"), user=HAMLET),
    Example((128,), create("new"), FORBIDDEN, user="bard@shakespeare.lit/globe"),
    Example((129,), create(NODE), Refusal("cancel", "conflict"), user=HAMLET),
    Example((131, 132), ps("<create/>"), ps("<create node='*'/>"), user=HAMLET),
    Example((133, 135), create("new"), user=HAMLET),
    Example((134,), create("new", config(access_model="whitelist")), user=HAMLET),
    Example((136,), create("new", config(access_model="roster")), NO_MODEL, user=HAMLET),
    Example((137, 138), create("new", config(**CONFIGURATION, access_model="open")), user=HAMLET),
    # The service fetches no address from a configuration (docs/xmpp.md, 2.1).
    Example((137,), create("new", config(**CONFIGURATION, body_xslt=XSLT)), NOT_ACCEPTABLE, user=HAMLET),
)
CONFIGURING = (
    Example((139, 140), configure(NODE), configure(NODE, form_of("node_config", "form")), user=HAMLET, kind="get"),
    Example((142,), configure(NODE), FORBIDDEN, kind="get"),
    Example((143,), own("<configure/>"), NO_NODE, user=HAMLET, kind="get"),
    Example((145,), configure("missing"), NOT_FOUND, user=HAMLET, kind="get"),
    Example((146, 148), configure("empty", config(**CONFIGURATION)), user=HAMLET),
    Example((146, 149), configure("empty", config(**CONFIGURATION, access_model="roster")), NO_MODEL, user=HAMLET),
    Example((147,), configure(NODE, submit({}, "cancel")), user=HAMLET),
    Example((149,), configure(NODE, config(max_items="0")), NOT_ACCEPTABLE, user=HAMLET),
    Example(
        (150,),
        configure("notified", config(title="Letters")),
        user=HAMLET,
        events={JID: "<configuration node='notified'/>"},
    ),
    Example(
        (151,),
        configure("notified", config(title="Letters", deliver_payloads="1")),
        user=HAMLET,
        events={JID: f"<configuration node='notified'>{form_of('node_config', 'result')}</configuration>"},
    ),
    Example(
        (152, 154),
        own("<default/>"),
        own(f"<default>{form_of('node_config', 'form')}</default>"),
        user=HAMLET,
        kind="get",
    ),
    Example(
        (153,),
        own("<default type='collection'/>"),
        Refusal("cancel", "feature-not-implemented", "unsupported", "collections"),
        user=HAMLET,
        kind="get",
    ),
)
DELETION = (
    Example((157, 159), delete(NODE), user=HAMLET, events={JID: f"<delete node='{NODE}'/>"}),
    Example(
        (158, 160), delete(NODE, REDIRECT), user=HAMLET, events={JID: f"<delete node='{NODE}'>{REDIRECT}</delete>"}
    ),
    Example((161,), delete(NODE), FORBIDDEN),
    Example((162,), delete("missing"), NOT_FOUND, user=HAMLET),
    Example((163, 164, 165), purge(NODE), user=HAMLET, events={JID: f"<purge node='{NODE}'/>"}),
    Example((167,), purge(NODE), FORBIDDEN),
    Example((168,), purge("transient"), NOT_PERSISTENT, user=HAMLET),
    Example((169,), purge("missing"), NOT_FOUND, user=HAMLET),
)
SUBSCRIBERS = (
    Example(
        (184, 185),
        subscriptions(NODE),
        subscriptions(NODE, (JID, "subscribed"), (POLONIUS_JID, "subscribed")),
        user=HAMLET,
        kind="get",
    ),
    Example((187,), subscriptions(NODE), FORBIDDEN, kind="get"),
    Example((188,), subscriptions("missing"), NOT_FOUND, user=HAMLET, kind="get"),
    Example(
        (189, 190),
        subscriptions("authorize", (JID, "subscribed")),
        user=HAMLET,
        events=told("authorize", "subscribed"),
    ),
    Example((192,), subscriptions(NODE, (JID, "none")), FORBIDDEN),
    Example((193,), subscriptions("missing", (JID, "none")), NOT_FOUND, user=HAMLET),
    # Owners may not subscribe others, unless the operator allows it (docs/xmpp.md, 1.8).
    Example(
        (194, 195),
        subscriptions(NODE, (JID, "none"), ("bard@shakespeare.lit", "subscribed")),
        (subscriptions(NODE, ("bard@shakespeare.lit", "none")), NOT_ACCEPTABLE),
        user=HAMLET,
        events=told(NODE, "none"),
    ),
    Example(
        (196,),
        subscriptions(NODE, (POLONIUS_JID, "none")),
        user=HAMLET,
        events=told(NODE, "none", POLONIUS_JID),
    ),
)
AFFILIATIONS = (
    Example(
        (197, 198),
        affiliations(NODE),
        affiliations(NODE, ("hamlet@denmark.lit", "owner"), (POLONIUS_JID, "member")),
        user=HAMLET,
        kind="get",
    ),
    Example((200,), affiliations(NODE), FORBIDDEN, kind="get"),
    Example((201,), affiliations("missing"), NOT_FOUND, user=HAMLET, kind="get"),
    Example((202, 203), affiliations(NODE, ("bard@shakespeare.lit", "publisher")), user=HAMLET),
    Example((206,), affiliations(NODE, (JID, "publisher")), FORBIDDEN),
    Example((207,), affiliations("missing", (JID, "publisher")), NOT_FOUND, user=HAMLET),
    Example(
        (208, 209),
        affiliations(
            NODE, ("hamlet@denmark.lit", "none"), (POLONIUS_JID, "none"), ("bard@shakespeare.lit", "publisher")
        ),
        (affiliations(NODE, ("hamlet@denmark.lit", "owner")), NOT_ACCEPTABLE),
        user=HAMLET,
    ),
)
ROWS = (*CREATION, *CONFIGURING, *DELETION, *SUBSCRIBERS, *AFFILIATIONS)
AUTHORIZE = "protocol/test_authorize.py"
ELSEWHERE = {
    170: f"{AUTHORIZE}::test_every_owner_gets_one_form",
    **dict.fromkeys((171, 172), f"{AUTHORIZE}::test_owner_approves"),
    **dict.fromkeys((173, 174), f"{AUTHORIZE}::test_owner_denies_and_the_user_may_ask_again"),
    175: f"{AUTHORIZE}::test_cancelled_form_leaves_the_request_pending",
    **dict.fromkeys((176, 177, 182, 183), f"{AUTHORIZE}::test_command_sends_the_requests_of_a_node_again"),
    180: f"{AUTHORIZE}::test_command_is_for_owners",
    181: f"{AUTHORIZE}::test_command_sends_requests_of_own_nodes_only",
}
NEVER = {
    **dict.fromkeys((126, 130, 141, 155, 156, 166, 178, 179, 186, 191, 199, 204, 205), SERVED),
    127: "the service has no registration",
    144: "every node has options",
    210: "the message is optional, and its element is misspelt in the XEP",
}


@examples(ROWS)
async def test_owner_example_is_answered_as_the_xep_shows(start: Starter, rows: list[Example]) -> None:
    """[xep-map 56] [xep-map 84]"""
    await play(await stage(start), rows)


def test_every_owner_example_is_accounted_for() -> None:
    assert_complete(125, 210, ROWS, ELSEWHERE, NEVER)


async def test_partly_refused_affiliations_change_the_others(start: Starter) -> None:
    """XEP-0060 8.9.2.4: "MUST process those that it can"; the same for subscriptions in 8.8.2.4."""
    component = await stage(start)
    entries = affiliations(NODE, ("hamlet@denmark.lit", "none"), ("bernardo@denmark.lit", "publisher"))
    await component.ask(HAMLET, "set", entries)

    answer = ok(await component.get(BERNARDO, "<affiliations/>"))

    (entry,) = answer.iterfind(".//{*}affiliation")
    assert dict(entry.attrib) == {"node": NODE, "affiliation": "publisher"}


async def test_node_of_the_example_has_its_configuration(start: Starter) -> None:
    """Example 137: the form shows what was submitted."""
    component = await stage(start)
    ok(await component.ask(HAMLET, "set", create("new", config(**CONFIGURATION))))

    shown = fields(ok(await component.ask(HAMLET, "get", f"<pubsub xmlns='{OWNER}'><configure node='new'/></pubsub>")))

    canonical = {"1": "true", "0": "false"}
    expected = {name: [canonical.get(value, value)] for name, value in CONFIGURATION.items()}
    assert {name: shown[name] for name in expected} == expected
