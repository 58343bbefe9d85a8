"""Stanzas between processes that share a component name."""

import pytest
from lxml import etree

from smartfeeds import xml_names
from smartfeeds.features.cluster.letter import ANY_PROCESS, EVERY_PROCESS, HANDED, SHARED, split_letter
from smartfeeds.features.cluster.relay import StanzaRelay, read_stanza
from smartfeeds.xml_names import DICTIONARY_BYTES, renew_names

NS = "jabber:component:accept"


def stanza(text: str) -> etree._Element:
    return etree.fromstring(f"<stream xmlns='{NS}'>{text}</stream>")[0]


class Post:
    """Notes what is posted, unless it is full."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.letters: list[tuple[str, bytes]] = []
        self._is_full = is_full

    def __call__(self, recipient: str, data: bytes) -> bool:
        if not self._is_full:
            self.letters.append((recipient, data))
        return not self._is_full


def relay(post: Post, *, has_others: bool = True) -> StanzaRelay:
    return StanzaRelay("a", post, lambda: has_others)


def test_response_goes_to_the_process_that_has_asked() -> None:
    """[TOP-005] [TOP-012] [TOP-030] [PG-072] The id of a request names its process."""
    post = Post()
    assert relay(post).return_answer(stanza("<iq type='result' id='call-b-1'/>"))
    ((recipient, data),) = post.letters
    topic, body = split_letter(data)
    assert (recipient, topic, read_stanza(body).get("id")) == ("b", SHARED, "call-b-1")


def test_own_response_and_request_stay() -> None:
    """[TOP-012]"""
    post = Post()
    for text in ("<iq type='result' id='call-a-1'/>", "<iq type='get' id='call-b-1'/>", "<iq type='result' id='x'/>"):
        assert not relay(post).return_answer(stanza(text))
    assert not relay(post, has_others=False).return_answer(stanza("<iq type='result' id='call-b-1'/>"))
    assert post.letters == []


@pytest.mark.parametrize("name", ["*", "?", "", "b 7", "\u00e9", "b" * 17, "b-c", "b" * 9_000])
def test_strangers_choose_no_recipient(name: str) -> None:
    """[TOP-012] [PG-072] The id of a response names its process, and strangers send responses with any id."""
    post = Post()
    assert not relay(post).return_answer(stanza(f"<iq type='result' id='call-{name}-1'/>"))
    assert not relay(post).return_answer(stanza(f"<iq type='result' id='call-b-{name}'/>"))
    assert post.letters == []


def test_process_that_cannot_pass_a_request_on_answers_it() -> None:
    """[TOP-034]"""
    leaving = relay(Post(is_full=True))
    leaving.leave()
    assert not leaving.hand_over(stanza("<iq type='get' id='1'/>"))


def test_process_that_stops_passes_requests_on_but_keeps_its_responses() -> None:
    """[TOP-034]"""
    post = Post()
    leaving = relay(post)
    assert not leaving.hand_over(stanza("<iq type='get' id='1'/>"))
    leaving.leave()
    assert not leaving.hand_over(stanza("<iq type='result' id='call-a-1'/>"))
    assert leaving.hand_over(stanza("<iq type='get' id='1'/>"))
    ((recipient, data),) = post.letters
    assert (recipient, split_letter(data)[0]) == (ANY_PROCESS, HANDED)


def test_presence_is_shown_to_all_others() -> None:
    """[TOP-013] Each process knows who is available."""
    post = Post()
    relay(post).share(stanza("<presence/>"))
    relay(post, has_others=False).share(stanza("<presence/>"))
    ((recipient, data),) = post.letters
    assert (recipient, split_letter(data)[0]) == (EVERY_PROCESS, SHARED)


def test_stanza_of_another_process_counts_among_what_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """[xep-map 246] The thread has a new dictionary at least once for each DICTIONARY_BYTES."""
    renewed: list[int] = []
    monkeypatch.setattr(xml_names, "renew_names", lambda: (renewed.append(1), renew_names()))
    data = b"<iq id='1'><x>%s</x></iq>" % (b"x" * 10_000)
    for _ in range(DICTIONARY_BYTES // len(data) + 2):
        read_stanza(data)
    assert renewed
