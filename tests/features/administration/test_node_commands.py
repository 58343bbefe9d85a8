"""The commands for nodes through the whole component: list, create, configure, delete (XEP-0050; issue 11, 3)."""

import pytest

from support.component import ALICE, BOB, EVE, Component, Starter, bare, fields, ok
from support.dialog import Dialog, actions, condition, lines, listed, notes, status, table
from support.features import FEATURE_NAMES

ADMIN = "root@example.org/desk"
OWNER_COMMANDS = ["list-nodes", "configure-node", "delete-node"]


@pytest.fixture
async def service(start: Starter) -> Component:
    """A component with an admin, and with a node of Alice."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea", title="Tea & cakes")
    await component.publish(ALICE, "tea", "one")
    return component


async def test_commands_shown_are_those_that_the_user_may_run(service: Component) -> None:
    """[xep-map 46] An outsider sees what works for everybody, a creator one command more, an owner those for nodes."""
    shown = {user: set(await listed(service, user)) for user in (EVE, BOB, ALICE, ADMIN)}

    assert shown[EVE] == FEATURE_NAMES & {"conflicts"}
    assert shown[BOB] == shown[EVE] | {"create-node"}
    assert shown[ALICE] > shown[BOB] | set(OWNER_COMMANDS)
    assert shown[ADMIN] >= shown[ALICE]


@pytest.mark.parametrize("node", OWNER_COMMANDS)
async def test_command_that_the_user_may_not_run_is_forbidden(service: Component, node: str) -> None:
    """[xep-map 239]"""
    assert condition(await Dialog(service, BOB, node).begin()) == "forbidden"
    assert condition(await Dialog(service, EVE, "create-node").begin()) == "forbidden"


@pytest.mark.parametrize("command", ["delete-node", "purge-node"])
async def test_rights_are_checked_at_every_step(service: Component, command: str) -> None:
    """[OPS-068] A user who lost the node meanwhile cannot go on, and nothing is deleted or retracted."""
    dialog = Dialog(service, ALICE, command)
    await dialog.begin()
    await dialog.go(node="tea")
    await service.affiliate(ALICE, "tea", BOB, "owner")
    await service.affiliate(BOB, "tea", ALICE, "none")

    assert condition(await dialog.go(confirm="true")) == "forbidden"
    assert await service.item_ids(BOB, "tea") == ["one"]


async def test_owner_cannot_reach_the_node_of_another_owner(service: Component) -> None:
    """The choice shows own nodes only, and another name is refused by the service."""
    await service.create(BOB, "bobs")
    dialog = Dialog(service, BOB, "configure-node")
    first = await dialog.begin()

    options = [option.findtext("{*}value") for option in first.iterfind(".//{*}option")]
    assert options == ["bobs"]
    assert condition(await dialog.go(node="tea")) == "forbidden"


async def test_list_of_one_page_is_a_table(service: Component) -> None:
    await service.create(BOB, "milk")
    await service.subscribe(BOB, "tea")
    row = {"node": "tea", "title": "Tea & cakes", "kind": "feed", "items": "1", "deleted": "0", "subscriptions": "1"}

    own = table(await Dialog(service, ALICE, "list-nodes").begin())
    every = table(await Dialog(service, ADMIN, "list-nodes").begin())

    assert own == [row | {"creator": bare(ALICE)}]
    assert [row["node"] for row in every] == ["milk", "tea"]


@pytest.mark.parametrize("user", [ALICE, ADMIN])
async def test_long_list_goes_forth_and_back_by_pages(service: Component, user: str) -> None:
    """Back works without the form too, as Gajim sends it; the end is a table of the page."""
    await service.many_nodes([f"n{number:03}" for number in range(120)])
    dialog = Dialog(service, user, "list-nodes")

    first = await dialog.begin()
    second = await dialog.go("next")
    third = await dialog.go("next")
    back = await dialog.send("", "prev")
    again = await dialog.go("prev")
    onward = await dialog.go()  # execute is the default action
    done = await dialog.go("complete")

    names = [lines(page) for page in (first, second, third)]
    assert sorted(name for page in names for name in page) == sorted(
        ["tea", *(f"n{number:03}" for number in range(120))]
    )
    assert [len(page) for page in names] == [50, 50, 21]
    assert (lines(back), lines(again), lines(onward)) == (names[1], names[0], names[1])
    assert [actions(page) for page in (first, second, third)] == [
        ("next", ["next", "complete"]),
        ("next", ["prev", "next", "complete"]),
        ("complete", ["prev", "complete"]),
    ]
    assert [row["node"] for row in table(done)] == names[1]
    assert status(done) == "completed"


async def test_list_of_hostile_names_fits_into_a_stanza(start: Starter) -> None:
    """Names and titles as long as they may be, of characters that are written with six bytes."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    for number in range(60):
        await component.create(ALICE, f"{number:02}" + '"' * 1_000, title="'" * 2_000)
    dialog = Dialog(component, ADMIN, "list-nodes")

    pages = [await dialog.begin()]
    while "next" in actions(pages[-1])[1]:
        pages.append(await dialog.go("next"))
    await Dialog(component, ADMIN, "configure-node").begin()

    assert [line[:2] for page in pages for line in lines(page)] == [f"{number:02}" for number in range(60)]


async def test_node_is_created_with_its_configuration(service: Component) -> None:
    dialog = Dialog(service, BOB, "create-node")
    form = await dialog.begin()

    done = await dialog.go(node="milk", title="Milk", access_model="whitelist")

    assert fields(form)["{urn:smartfeeds:0}kind"] == [""]
    assert notes(done) == ["Created the node milk."]
    config = await service.config(BOB, "milk")
    assert (config["title"], config["access_model"]) == (["Milk"], ["whitelist"])


async def test_node_without_a_name_gets_one(service: Component) -> None:
    """An instant node (XEP-0060 8.1.2)."""
    dialog = Dialog(service, BOB, "create-node")
    await dialog.begin()

    (name,) = fields(await dialog.go())["node"]

    assert await service.item_ids(BOB, name) == []


async def test_node_is_configured_with_the_form_of_the_owner(service: Component) -> None:
    """The fields are those of `pubsub#owner`, with their values."""
    dialog = Dialog(service, ALICE, "configure-node")
    await dialog.begin()
    form = fields(await dialog.go(node="tea"))
    owners = await service.config(ALICE, "tea")

    done = await dialog.go(title="Coffee")

    assert {var: values for var, values in form.items() if var in owners} == owners
    assert set(form) - set(owners) == {"step", "node"}
    assert notes(done) == ["Configured the node tea."]
    assert (await service.config(ALICE, "tea"))["title"] == ["Coffee"]


async def test_node_is_deleted_after_a_confirmation(service: Component) -> None:
    """Without the tick nothing is deleted."""
    dialog = Dialog(service, ALICE, "delete-node")
    await dialog.begin()
    shown = await dialog.go(node="tea")
    kept = await dialog.go()
    assert await service.item_ids(ALICE, "tea") == ["one"]
    dialog = Dialog(service, ALICE, "delete-node")
    await dialog.begin()
    await dialog.go(node="tea")
    done = await dialog.go(confirm="1")

    assert lines(shown) == ["The node tea has 1 item and 0 subscriptions."]
    assert notes(kept) == ["The node tea was not deleted."]
    assert notes(done) == ["Deleted the node tea."]
    assert condition(await service.get(ALICE, "<items node='tea'/>")) == "item-not-found"
    assert "delete-node" not in await listed(service, ALICE)


async def test_step_can_be_answered_by_another_process(service: Component, start: Starter) -> None:
    """All state is in the hidden fields and in the id of the session."""
    dialog = Dialog(service, ALICE, "configure-node")
    await dialog.begin()
    await dialog.go(node="tea")
    other = await start.again(service, pubsub={"admins": [bare(ADMIN)]})
    dialog._component = other

    assert notes(await dialog.go(title="Milk")) == ["Configured the node tea."]
    assert ok(await other.get(ALICE, "<items node='tea'/>")) is not None


@pytest.mark.parametrize(
    "page",
    ["after:1", "after:x:n", "sideways:1:n", "after:1:", "before:0:n", "after:999999999:n", "before:5:" + "n" * 5_000],
)
@pytest.mark.parametrize("user", [ALICE, ADMIN])
async def test_forged_position_of_a_page_does_no_harm(service: Component, user: str, page: str) -> None:
    """A page of the list, an empty page, or an error; the next request is answered."""
    await service.many_nodes([f"n{number:03}" for number in range(60)])
    dialog = Dialog(service, user, "list-nodes")
    await dialog.begin()

    answer = await dialog.go("next", **{"page-next": page})

    assert answer.get("type") == "result" or condition(answer) in {"bad-request/bad-payload", "item-not-found"}
    if answer.get("type") == "result" and status(answer) == "completed":
        assert notes(answer) == ["The list has changed. Start the command again."]
    else:
        assert status(await dialog.go("complete")) == "completed"
