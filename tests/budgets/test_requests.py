"""The work of requests over XMPP stays within its budget: calls, modules of the package, SQL statements.

Each limit is what a request takes now, among 50 that come at once. A change that makes a request cheaper lowers it; one
that makes it dearer needs a reason.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from budgets.support_http import Budget, PageWork
from budgets.support_xmpp import MANY, XmppWork, iq, listing, publish, xmpp_work

MARGIN = 1.03  # for other versions of the libraries


async def publishes(work: XmppWork) -> PageWork:
    await work.exchange([iq("set", "c", "<create node='n'/>")])
    return await work.of([publish("n", number) for number in range(MANY)])


async def unread_publishes(work: XmppWork) -> PageWork:
    """The index of a node of which nobody has read a filtered view."""
    await work.exchange([iq("set", "c", "<create node='n'/>")])
    return await work.of_index([publish("n", number) for number in range(MANY)])


async def indexed_publishes(work: XmppWork) -> PageWork:
    await work.exchange([iq("set", "c", "<create node='n'/>"), iq("get", "g", "<items node='n?category=reports'/>")])
    return await work.of_index([publish("n", number) for number in range(MANY)])


async def notified_publishes(work: XmppWork) -> PageWork:
    await work.exchange([iq("set", "c", "<create node='n'/>")])
    await work.exchange([iq("set", "s", "<subscribe node='n' jid='bob@example.org'/>", "bob@example.org/phone")])
    return await work.of([publish("n", number) for number in range(MANY)], messages=1)


async def subscribes(work: XmppWork) -> PageWork:
    await work.exchange([iq("set", "c", "<create node='n'/>")])
    names = [f"u{number}@example.org" for number in range(MANY)]
    return await work.of([iq("set", "s", f"<subscribe node='n' jid='{name}'/>", f"{name}/phone") for name in names])


async def creates(work: XmppWork) -> PageWork:
    return await work.of([iq("set", "c", f"<create node='n{number}'/>") for number in range(MANY)])


async def pages(work: XmppWork) -> PageWork:
    await work.exchange([iq("set", "c", "<create node='n'/>")])
    await work.exchange([publish("n", number) for number in range(100)])
    return await work.of([iq("get", "g", "<items node='n' max_items='50'/>")] * MANY)


async def lists(work: XmppWork) -> PageWork:
    await work.exchange([iq("set", "c", f"<create node='n{number}'/>") for number in range(100)])
    return await work.of([listing(50)] * MANY)


async def notifications(work: XmppWork) -> PageWork:
    """Twenty more subscribers of a node."""
    for node, subscribers in (("few", 1), ("many", 21)):
        names = [f"u{number}@example.org" for number in range(subscribers)]
        await work.exchange([iq("set", "c", f"<create node='{node}'/>")])
        await work.exchange(
            [iq("set", "s", f"<subscribe node='{node}' jid='{name}'/>", f"{name}/phone") for name in names]
        )
    few, many = ([publish(node, number) for number in range(MANY // 2)] for node in ("few", "many"))
    return await work.of_messages(few, many, (1, 21))


# Statements that a group of requests shares count in part for each. Their limits leave room for a group in two pieces.
# The budgets of design for `publishes` are 150 calls of Python, 120 of C and 30 modules, and 40 modules for
# `notified_publishes`.
BUDGETS = {
    publishes: Budget(103, 119, 29, 0.5),
    unread_publishes: Budget(0, 0, 0, 0.0),
    indexed_publishes: Budget(22, 111, 10, 0.22),
    notified_publishes: Budget(156, 174, 36, 0.55),
    subscribes: Budget(132, 128, 30, 0.42),
    creates: Budget(92, 88, 25, 0.38),
    pages: Budget(140, 590, 28, 1.2),
    lists: Budget(217, 471, 26, 3.1),
    notifications: Budget(21, 45, 4, 0.1),
}


@pytest.mark.parametrize(("measure", "budget"), [pytest.param(*row, id=row[0].__name__) for row in BUDGETS.items()])
async def test_request_stays_within_its_budget(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measure: Callable[[XmppWork], Awaitable[PageWork]],
    budget: Budget,
) -> None:
    async def work_in(folder: Path) -> PageWork:
        async with xmpp_work(folder, monkeypatch) as service:
            return await measure(service)

    await budget.assert_holds(work_in, tmp_path, MARGIN)
