"""Which resources of contacts are available (RFC 6121 section 4)."""

import pytest

from smartfeeds.features.presence.states import Availability, OnlineResource

FEEDS, NEWS = "feeds.x", "news@feeds.x"
BOB = "bob@x"


def test_presence_of_strangers_is_unknown() -> None:
    availability = Availability()
    assert availability.note(FEEDS, BOB, "phone", OnlineResource()) is False
    assert availability.is_available(BOB) is None


def test_contact_that_has_not_answered_is_unknown_until_it_sends_presence() -> None:
    availability = Availability()
    availability.watch(FEEDS, BOB, granted=False)
    assert availability.is_available(BOB) is None
    availability.note(FEEDS, BOB, "phone", OnlineResource())
    assert availability.is_available(BOB) is True


def test_contact_is_available_at_any_address() -> None:
    availability = Availability()
    for address in (FEEDS, NEWS):
        availability.watch(address, BOB, granted=True)
    assert availability.is_available(BOB) is False
    availability.note(NEWS, BOB, "phone", OnlineResource())
    assert (availability.is_available(BOB), availability.is_available(f"{BOB}/phone")) == (True, True)
    assert availability.is_available(f"{BOB}/home") is False
    availability.forget(NEWS, BOB)
    assert availability.is_available(BOB) is False
    availability.forget(FEEDS, BOB)
    assert availability.is_available(BOB) is None


@pytest.mark.parametrize(
    ("resource", "bare", "full"),
    [
        (OnlineResource(-1), False, True),
        (OnlineResource(0, "dnd"), False, False),
        (OnlineResource(0, "away"), True, True),
    ],
)
def test_priority_and_show_decide(resource: OnlineResource, bare: bool, full: bool) -> None:
    availability = Availability()
    availability.watch(FEEDS, BOB, granted=True)
    availability.note(FEEDS, BOB, "phone", resource)
    shows = ("online", "away")
    assert (availability.is_available(BOB, shows), availability.is_available(f"{BOB}/phone", shows)) == (bare, full)


def test_contacts_and_resources_are_bounded() -> None:
    availability = Availability(contacts_max=1, resources_max=2)
    for jid in (BOB, "eve@y"):
        availability.watch(FEEDS, jid, granted=True)
    for name in ("a", "b", "c"):
        availability.note(FEEDS, BOB, name, OnlineResource())
    assert list(availability.resources(FEEDS, BOB)) == ["a", "b"]
    assert availability.is_available("eve@y") is None
    availability.forget(FEEDS, BOB)
    availability.watch(FEEDS, "eve@y", granted=True)
    assert availability.is_available("eve@y") is False


def test_departure_counts_once_the_resource_is_available_at_no_address() -> None:
    availability = Availability()
    for address in (FEEDS, NEWS):
        availability.watch(address, BOB, granted=True)
        for name in ("phone", "desk"):
            availability.note(address, BOB, name, OnlineResource())
    assert availability.leave(FEEDS, BOB, "phone") == []
    assert availability.leave(NEWS, BOB, "phone") == ["phone"]
    assert availability.leave(FEEDS, BOB, "") == []
    assert availability.forget(NEWS, BOB) == ["desk"]
    assert availability.leave(NEWS, BOB, "desk") == []


def test_lost_link_removes_resources_but_no_contacts() -> None:
    availability = Availability()
    availability.watch(FEEDS, BOB, granted=True)
    availability.note(FEEDS, BOB, "phone", OnlineResource())
    availability.clear()
    assert availability.is_available(BOB) is False
