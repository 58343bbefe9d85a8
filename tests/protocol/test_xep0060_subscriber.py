"""The examples of XEP-0060 section 6, subscriber use cases, request by request (xep-map G, K)."""

from support.component import NS, Refusal, Starter
from support.examples import (
    CLOSED,
    FORBIDDEN,
    IDS,
    NODE,
    NOT_FOUND,
    NOT_PERSISTENT,
    OPTIONAL,
    PAYMENT,
    PRESENCE,
    ROSTER,
    SERVED,
    SUBIDS,
    Example,
    assert_complete,
    examples,
    form_of,
    item,
    play,
    ps,
    stage,
    sub_options,
)

JID = "francisco@denmark.lit"


def subscribe(node: str, jid: str = JID) -> str:
    return ps(f"<subscribe node='{node}' jid='{jid}'/>")


def unsubscribe(node: str, jid: str = JID) -> str:
    return ps(f"<unsubscribe node='{node}' jid='{jid}'/>")


def options(node: str = NODE, inner: str = "", jid: str = JID) -> str:
    attribute = f" jid='{jid}'" if jid else ""
    return ps(f"<options node='{node}'{attribute}>{inner}</options>")


def subscription(node: str, state: str) -> str:
    return f"<subscription node='{node}' jid='{JID}' subscription='{state}'/>"


def items(node: str = NODE, inner: str = "") -> str:
    return ps(f"<items node='{node}'>{inner}</items>")


ROWS = (
    Example((28, 29), subscribe("empty"), ps(subscription("empty", "subscribed"))),
    Example((30,), subscribe("empty", "bard@shakespeare.lit"), Refusal("modify", "bad-request", "invalid-jid")),
    Example((31,), subscribe("presence"), PRESENCE),
    Example((33,), subscribe("whitelist"), CLOSED),
    Example((36,), subscribe("authorize"), Refusal("auth", "not-authorized", "pending-subscription")),
    Example((37,), subscribe("outcast"), FORBIDDEN),
    Example(
        (39,),
        subscribe("unsubscribable"),
        Refusal("cancel", "feature-not-implemented", "unsupported", "subscribe"),
    ),
    Example((40,), subscribe("moved"), Refusal("modify", "gone")),
    Example((41,), subscribe("missing"), NOT_FOUND),
    Example(
        (42,),
        ps("<subscribe node='authorize' jid='polonius@denmark.lit'/>"),
        ps("<subscription node='authorize' jid='polonius@denmark.lit' subscription='pending'/>"),
        user="polonius@denmark.lit/arras",
    ),
    Example(
        (46,),
        subscribe("last"),
        ps(subscription("last", "subscribed")),
        events={JID: f"<items node='last'>{item(IDS[0])}</items>"},
    ),
    Example((47, 48), unsubscribe(NODE), ps(subscription(NODE, "none"))),
    Example((50,), unsubscribe("empty"), Refusal("cancel", "unexpected-request", "not-subscribed")),
    Example((51,), unsubscribe(NODE, "polonius@denmark.lit"), FORBIDDEN),
    Example((52,), unsubscribe("missing"), NOT_FOUND),
    Example((55, 56), options(), options(inner=form_of("subscribe_options", "form")), kind="get"),
    Example((57,), options(jid="polonius@denmark.lit"), FORBIDDEN, kind="get"),
    Example((58,), options("empty"), Refusal("modify", "unexpected-request", "not-subscribed"), kind="get"),
    Example((59,), options(jid=""), Refusal("modify", "bad-request", "jid-required"), kind="get"),
    Example((63,), options("missing"), NOT_FOUND, kind="get"),
    Example((64, 65), options(inner=sub_options(deliver="1", digest="0", include_body="false"))),
    Example((66,), options(inner=sub_options(deliver="maybe")), Refusal("modify", "bad-request", "invalid-options")),
    Example(
        (67, 68),
        ps(
            f"<subscribe node='empty' jid='{JID}'/>"
            f"<options>{sub_options(deliver='1', digest='0', include_body='false')}</options>"
        ),
        ps(f"{subscription('empty', 'subscribed')}<options>{form_of('subscribe_options', 'result')}</options>"),
    ),
    Example(
        (69, 71),
        ps(f"<default node='{NODE}'/>"),
        ps(f"<default node='{NODE}'>{form_of('subscribe_options', 'result')}</default>"),
        kind="get",
    ),
    Example((70,), ps("<default/>"), ps(f"<default>{form_of('subscribe_options', 'result')}</default>"), kind="get"),
    Example((74, 75), items(), items(inner="".join(map(item, IDS))), kind="get"),
    Example(
        (76,),
        ps(f"<items node='{NODE}'/><set xmlns='{NS['rsm']}'><max>2</max></set>"),
        ps(f"<items node='{NODE}'>{item(IDS[0])}{item(IDS[1])}</items><set xmlns='{NS['rsm']}'>...</set>"),
        kind="get",
    ),
    Example(
        (77, 80, 81),
        ps(f"<items node='{NODE}' max_items='2'/>"),
        ps(f"<items node='{NODE}'>{item(IDS[1])}{item(IDS[2])}</items>..."),
        kind="get",
    ),
    Example((78, 79, 83), items(inner=f"<item id='{IDS[1]}'/>"), items(inner=item(IDS[1])), kind="get"),
    Example((82,), items("empty"), items("empty"), kind="get"),
    Example((86,), items("authorize"), Refusal("auth", "not-authorized", "not-subscribed"), kind="get"),
    Example((87,), items("transient"), NOT_PERSISTENT, kind="get"),
    Example((89,), items("presence"), PRESENCE, kind="get"),
    Example((91,), items("whitelist"), CLOSED, kind="get"),
    Example((93,), items("outcast"), FORBIDDEN, kind="get"),
    Example((94,), items("missing"), NOT_FOUND, kind="get"),
    Example((95,), items(inner="<item id='none'/>"), items(), kind="get"),
)
ELSEWHERE = {
    38: "protocol/test_subscribing.py::test_subscribe_over_the_quota_is_refused",
    54: "protocol/test_discovery.py::test_service_announces_what_it_does_and_nothing_else",
}
NEVER = {
    32: ROSTER,
    34: PAYMENT,
    35: "a component does not learn that a user is anonymous",
    **dict.fromkeys((43, 44, 45), OPTIONAL),
    **dict.fromkeys((49, 53, 60, 61, 84, 85), SUBIDS),
    **dict.fromkeys((62, 72, 73, 88), SERVED),
    90: ROSTER,
    92: PAYMENT,
}


@examples(ROWS)
async def test_subscriber_example_is_answered_as_the_xep_shows(start: Starter, rows: list[Example]) -> None:
    """[xep-map 98] [xep-map 103] [xep-map 186]"""
    await play(await stage(start), rows)


def test_every_subscriber_example_is_accounted_for() -> None:
    assert_complete(28, 95, ROWS, ELSEWHERE, NEVER)
