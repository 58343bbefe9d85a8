"""Creating, configuring, deleting and purging nodes through the whole component (xep-map E; XEP-0060 8.1 to 8.5)."""

from support.component import ALICE, Component, bare, body, ok


async def test_create_with_a_name_makes_the_requester_owner(component: Component) -> None:
    """[xep-map 56]"""
    answer = ok(await component.set(ALICE, "<create node='comments'/>"))
    listed = ok(await component.owner_get(ALICE, "<affiliations node='comments'/>"))

    assert body(answer) == []
    assert [dict(entry.attrib) for entry in listed.iter("{*}affiliation")] == [
        {"jid": bare(ALICE), "affiliation": "owner"}
    ]
