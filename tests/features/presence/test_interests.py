"""Which resources request the notifications of which nodes."""

from smartfeeds.features.presence.interests import Interest, Interests
from smartfeeds.xmpp.caps import CapsKey

PHONE, DESK = CapsKey("sha-1", "phone"), CapsKey("sha-1", "desk")
BOB = Interest("bob@x/phone", "feeds.x", 5)
EVE = Interest("eve@x/phone", "feeds.x", 6)


def test_resources_with_the_same_capabilities_request_the_same_nodes() -> None:
    interests = Interests()
    interests.learn(PHONE, ("news", "mood", "news"))
    assert interests.add(PHONE, BOB) == ("news", "mood")
    interests.add(PHONE, EVE)
    assert interests.of("news") == [BOB, EVE]
    assert (interests.of("tune"), interests.since_us("tune"), interests.since_us("news")) == ([], None, 5)
    assert (interests.of_resource(BOB.jid), interests.of_resource("x@x/x")) == (BOB, None)
    assert interests.remove(BOB.jid) == ("news", "mood")
    assert interests.of("mood") == [EVE]
    interests.clear()
    assert (interests.of("mood"), interests.since_us("mood"), interests.knows(PHONE)) == ([], None, True)


def test_changed_capabilities_replace_the_former_ones() -> None:
    interests = Interests()
    interests.learn(PHONE, ("news", "mood"))
    interests.learn(DESK, ("mood", "tune"))
    interests.add(PHONE, BOB)
    assert interests.add(DESK, BOB) == ("tune",)
    assert (interests.of("news"), interests.of("tune")) == ([], [BOB])
    assert interests.add(CapsKey("sha-1", "unknown"), BOB) == ()
    assert interests.of("tune") == []


def test_version_changes_with_the_resources() -> None:
    interests = Interests()
    interests.learn(PHONE, ("news",))
    interests.learn(DESK, ("news", "tune"))
    versions = [interests.version("news")]
    for change in (
        lambda: interests.add(PHONE, BOB),
        lambda: interests.add(DESK, EVE),
        lambda: interests.remove(BOB.jid),
        lambda: interests.add(PHONE, BOB),
    ):
        change()
        versions.append(interests.version("news"))
    assert len(set(versions)) == len(versions)
    before = interests.version("tune")
    interests.remove(BOB.jid)
    assert interests.version("tune") == before


def test_capabilities_and_nodes_are_bounded() -> None:
    interests = Interests(keys_max=2, nodes_max=2)
    interests.learn(PHONE, ("a", "b", "c"))
    assert interests.add(PHONE, BOB) == ("a", "b")
    interests.learn(DESK, ("d",))
    third, fourth = CapsKey("sha-1", "3"), CapsKey("sha-1", "4")
    interests.learn(third, ("e",))
    assert (interests.knows(PHONE), interests.knows(DESK), interests.knows(third)) == (True, False, True)
    interests.add(third, EVE)
    interests.learn(fourth, ("f",))
    assert not interests.knows(fourth)
