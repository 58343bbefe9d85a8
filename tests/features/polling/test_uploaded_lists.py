"""Subscription lists that people upload."""

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.polling.uploaded_lists import UploadedFeed, read_upload
from smartfeeds.worker_codec import dump_value, load_value
from support.outlines import opml

OWN_URL = "https://feeds.a.example/f"


def test_folders_are_kept_and_each_feed_comes_once() -> None:
    """[SRC-083] Folders in folders, an address in two spellings, and outlines without an address."""
    document = opml(
        '<outline text="Alone" xmlUrl="https://a.example/feed"/>',
        '<outline text="News"><outline text="B" type="rss" xmlUrl="https://b.example/feed"/>'
        '<outline text="Local"><outline text="C" xmlUrl="https://c.example/feed"/></outline>'
        '<outline text="Again" xmlUrl="https://A.example:443/feed"/></outline>',
        '<outline title="Only a title" type="atom" url="https://d.example/feed"/>',
        '<outline text="a note"/>',
    )
    assert read_upload(document, 10, OWN_URL) == [
        UploadedFeed("https://a.example/feed", "https://a.example/feed", "Alone", ""),
        UploadedFeed("https://b.example/feed", "https://b.example/feed", "B", "News"),
        UploadedFeed("https://c.example/feed", "https://c.example/feed", "C", "News / Local"),
        UploadedFeed("https://d.example/feed", "https://d.example/feed", "Only a title", ""),
    ]


def test_addresses_to_request_are_those_of_other_servers() -> None:
    """[SRC-014] Without names and passwords."""
    texts = {
        "feed://a.example/feed": "http://a.example/feed",
        "b.example/feed": "https://b.example/feed",
        "https://me:secret@c.example/": "",
        "ftp://d.example/": "",
        f"{OWN_URL}/feeds/news/": "",
    }
    feeds = read_upload(opml(*(f'<outline xmlUrl="{text}"/>' for text in texts)), 10, OWN_URL)
    assert {feed.text: feed.url for feed in feeds} == texts


def test_outlines_below_a_feed_are_in_its_folder() -> None:
    document = opml(
        '<outline text="F"><outline text="A" xmlUrl="https://a.example/f"><outline text="B" xmlUrl="https://b.example/f"/>'
        "</outline></outline>"
    )
    assert [feed.folder for feed in read_upload(document, 10, OWN_URL)] == ["F", "F"]


@pytest.mark.parametrize(
    ("document", "condition"),
    [
        (b"", Condition.INVALID_PAYLOAD),
        (b"not XML", Condition.INVALID_PAYLOAD),
        (b"<rss version='2.0'><channel/></rss>", Condition.INVALID_PAYLOAD),
        (opml('<outline text="no address"/>'), Condition.INVALID_PAYLOAD),
        (opml(*(f'<outline xmlUrl="https://a.example/{number}"/>' for number in range(11))), Condition.PAYLOAD_TOO_BIG),
    ],
)
def test_other_documents_are_refused(document: bytes, condition: Condition) -> None:
    with pytest.raises(FeedError) as caught:
        read_upload(document, 10, OWN_URL)
    assert caught.value.condition is condition


def test_long_texts_are_cut() -> None:
    (feed,) = read_upload(
        opml(f'<outline text="{"f" * 999}"><outline text="{"t" * 999}" xmlUrl="https://a.example/"/></outline>'),
        1,
        OWN_URL,
    )
    assert (len(feed.title), len(feed.folder)) == (200, 100)


def test_result_comes_out_of_the_process_that_reads() -> None:
    feeds = read_upload(opml('<outline text="A" xmlUrl="https://a.example/feed"/>'), 1, OWN_URL)
    assert load_value(dump_value(feeds)) == feeds
