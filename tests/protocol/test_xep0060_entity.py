"""The examples of XEP-0060 section 5, entity use cases, request by request (xep-map C, F)."""

from support.component import INFO, ITEMS, PS, Starter
from support.examples import (
    BARD,
    FRANCISCO,
    HAMLET,
    IDS,
    NODE,
    POLONIUS,
    SERVED,
    Example,
    assert_complete,
    examples,
    form_of,
    play,
    ps,
    stage,
)

SERVICE = "feeds.example.org"
# Of the nodes of the stage, those that Bard may know.
LISTED = (
    "authorize",
    "empty",
    "full",
    "last",
    "notified",
    "outcast",
    "presence",
    NODE,
    "transient",
    "unsubscribable",
)


def info(inner: str = "", node: str = "") -> str:
    attribute = f" node='{node}'" if node else ""
    return f"<query xmlns='{INFO}'{attribute}>{inner}</query>"


def items(inner: str = "", node: str = "") -> str:
    attribute = f" node='{node}'" if node else ""
    return f"<query xmlns='{ITEMS}'{attribute}>{inner}</query>"


def subscription(node: str, state: str = "subscribed") -> str:
    return f"<subscription node='{node}' jid='francisco@denmark.lit' subscription='{state}'/>"


def listed(node: str) -> str:
    name = " name='Princely Musings'" if node == NODE else ""
    return f"<item jid='{SERVICE}' node='{node}'{name}/>"


LEAF = f"<identity category='pubsub' type='leaf' name='Princely Musings'/><feature var='{PS}'/>"
ROWS = (
    Example(
        (8,),
        info(),
        info(f"<identity category='pubsub' type='service' name='*'/><feature var='{PS}'/>..."),
        kind="get",
    ),
    Example((9, 10), items(), items("".join(map(listed, LISTED))), kind="get", user=BARD),
    Example((11, 12, 13, 14), info(node=NODE), info(f"{LEAF}{form_of('meta-data', 'result')}...", NODE), kind="get"),
    Example(
        (15,),
        items(node=NODE),
        items("".join(f"<item jid='{SERVICE}' name='{item_id}'/>" for item_id in IDS), NODE),
        kind="get",
    ),
    Example(
        (16, 17),
        ps("<subscriptions/>"),
        ps(
            f"<subscriptions>{subscription(NODE)}{subscription('notified')}"
            f"{subscription('authorize', 'pending')}</subscriptions>"
        ),
        kind="get",
    ),
    Example((18,), ps("<subscriptions/>"), ps("<subscriptions/>"), kind="get", user=BARD),
    Example(
        (20, 21),
        ps(f"<subscriptions node='{NODE}'/>"),
        ps(f"<subscriptions node='{NODE}'>{subscription(NODE)}</subscriptions>"),
        kind="get",
    ),
    Example(
        (22, 23),
        ps("<affiliations/>"),
        ps(f"<affiliations><affiliation node='{NODE}' affiliation='member'/></affiliations>"),
        kind="get",
        user=POLONIUS,
    ),
    Example((24,), ps("<affiliations/>"), ps("<affiliations/>"), kind="get", user=BARD),
    Example(
        (26, 27),
        ps(f"<affiliations node='{NODE}'/>"),
        ps(f"<affiliations node='{NODE}'><affiliation node='{NODE}' affiliation='owner'/></affiliations>"),
        kind="get",
        user=HAMLET,
    ),
    Example(
        (23,),
        ps("<affiliations/>"),
        ps("<affiliations><affiliation node='outcast' affiliation='outcast'/></affiliations>"),
        kind="get",
        user=FRANCISCO,
    ),
)
NEVER = dict.fromkeys((19, 25), SERVED)


@examples(ROWS)
async def test_entity_example_is_answered_as_the_xep_shows(start: Starter, rows: list[Example]) -> None:
    """[xep-map 22] [xep-map 84]"""
    await play(await stage(start), rows)


def test_every_entity_example_is_accounted_for() -> None:
    assert_complete(8, 27, ROWS, {}, NEVER)
