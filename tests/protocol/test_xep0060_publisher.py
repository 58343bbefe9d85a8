"""The examples of XEP-0060 section 7, publisher use cases, request by request (xep-map H, I)."""

from support.component import Refusal, Starter, entry, form
from support.examples import (
    FORBIDDEN,
    HAMLET,
    IDS,
    NO_NODE,
    NODE,
    NOT_FOUND,
    NOT_PERSISTENT,
    SERVED,
    SUBIDS,
    Example,
    assert_complete,
    examples,
    item,
    play,
    ps,
    stage,
)

JID = "francisco@denmark.lit"
SOLILOQUY = entry("Soliloquy")
NEW = "bnd81g37d61f49fgn581"


def publish(node: str, inner: str, behind: str = "") -> str:
    return ps(f"<publish node='{node}'>{inner}</publish>{behind}")


def retract(node: str, item_id: str = IDS[0]) -> str:
    return ps(f"<retract node='{node}' notify='1'><item id='{item_id}'/></retract>")


def bad(detail: str) -> Refusal:
    return Refusal("modify", "bad-request", detail)


def presence_options() -> str:
    return f"<publish-options>{form('http://jabber.org/protocol/pubsub#publish-options', access_model='presence')}"


WITH_ID = f"<item id='{NEW}'>{SOLILOQUY}</item>"
ROWS = (
    Example(
        (96, 98, 100, 102),
        publish(NODE, WITH_ID),
        publish(NODE, f"<item id='{NEW}'/>"),
        user=HAMLET,
        events={JID: f"<items node='{NODE}'>{item(NEW)}</items>"},
    ),
    Example((97, 99), publish(NODE, f"<item>{SOLILOQUY}</item>"), publish(NODE, "<item id='*'/>"), user=HAMLET),
    Example(
        (101,),
        publish("notified", WITH_ID),
        publish("notified", f"<item id='{NEW}'/>"),
        user=HAMLET,
        events={JID: f"<items node='notified'><item id='{NEW}' publisher='hamlet@denmark.lit'/></items>"},
    ),
    Example((103,), ps(f"<items node='{NODE}'/>"), ps(f"<items node='{NODE}'>{item(IDS[0])}...</items>"), kind="get"),
    Example((105,), publish(NODE, WITH_ID), FORBIDDEN),
    Example((107,), publish("missing", WITH_ID), NOT_FOUND, user=HAMLET),
    Example((108,), publish("full", WITH_ID), Refusal("cancel", "conflict", "node-full"), user=HAMLET),
    Example((110,), publish(NODE, f"<item>{SOLILOQUY}{SOLILOQUY}</item>"), bad("invalid-payload"), user=HAMLET),
    Example((111,), publish(NODE, ""), bad("item-required"), user=HAMLET),
    Example((112,), publish(NODE, "<item/>"), bad("payload-required"), user=HAMLET),
    Example((113,), publish("transient", WITH_ID), bad("item-forbidden"), user=HAMLET),
    Example(
        (114,),
        publish(NODE, WITH_ID, f"{presence_options()}</publish-options>"),
        Refusal("cancel", "conflict", "precondition-not-met"),
        user=HAMLET,
    ),
    Example(
        (115, 116, 117),
        retract(NODE),
        user=HAMLET,
        events={JID: f"<items node='{NODE}'><retract id='{IDS[0]}'/></items>"},
    ),
    Example((119,), retract(NODE), FORBIDDEN),
    Example((120,), retract(NODE, "none"), NOT_FOUND, user=HAMLET),
    Example((120,), retract("missing"), NOT_FOUND, user=HAMLET),
    Example((121,), ps(f"<retract><item id='{IDS[0]}'/></retract>"), NO_NODE, user=HAMLET),
    Example((122,), ps(f"<retract node='{NODE}'/>"), bad("item-required"), user=HAMLET),
    Example((123,), retract("transient"), NOT_PERSISTENT, user=HAMLET),
)
ELSEWHERE = {109: "protocol/test_publishing.py::test_payload_of_a_whole_stanza_is_refused_and_the_link_stays"}
NEVER = {**dict.fromkeys((104, 118), SUBIDS), **dict.fromkeys((106, 124), SERVED)}


@examples(ROWS)
async def test_publisher_example_is_answered_as_the_xep_shows(start: Starter, rows: list[Example]) -> None:
    """[xep-map 130] [xep-map 154]"""
    await play(await stage(start), rows)


def test_every_publisher_example_is_accounted_for() -> None:
    assert_complete(96, 124, ROWS, ELSEWHERE, NEVER)
