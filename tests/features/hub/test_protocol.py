"""The protocol of the hub: requests, checks, signatures."""

import json
from urllib.parse import urlencode

import pytest

from smartfeeds.features.callbacks.signatures import sign
from smartfeeds.features.hub.protocol import (
    HUB_QUESTION,
    HUB_TERMS,
    HubDialect,
    HubQuestion,
    HubRequest,
    HubRequestError,
    HubTerms,
    Mode,
    question_url,
    read_request,
)
from support.golden import GOLDEN

CALLBACK, TOPIC = "http://reader.example/cb/5tV0k?kind=push", "http://feeds.example/feeds/news/"
GOOD = [("hub.callback", CALLBACK), ("hub.mode", "subscribe"), ("hub.topic", TOPIC)]


def read(*changes: tuple[str, str | None], more: tuple[tuple[str, str], ...] = ()) -> HubRequest:
    """The request of GOOD with other values, without those that are None, and with more fields."""
    values = dict(changes)
    pairs = [(name, values.get(name, value)) for name, value in GOOD]
    pairs += [(name, value) for name, value in changes if name not in dict(GOOD)]
    return read_request(urlencode([*((n, v) for n, v in pairs if v is not None), *more]).encode())


def refusal(*changes: tuple[str, str | None], more: tuple[tuple[str, str], ...] = ()) -> str:
    with pytest.raises(HubRequestError) as caught:
        read(*changes, more=more)
    return str(caught.value)


def test_request_is_read() -> None:
    """[WS-001]"""
    assert read() == HubRequest(Mode.SUBSCRIBE, CALLBACK, TOPIC)
    golden = read_request(GOLDEN["http"]["subscribe"]["body"].encode())
    assert (golden.mode, golden.callback) == (Mode.SUBSCRIBE, "http://mysite.example.com/push-handler")
    assert (golden.dialect, golden.at_once) == (HubDialect.PUBSUBHUBBUB, False)


@pytest.mark.parametrize("name", ["hub.callback", "hub.mode", "hub.topic"])
def test_required_parameter_is_named(name: str) -> None:
    """[WS-003]"""
    assert refusal((name, None)) == f"{name} is missing"
    assert refusal((name, "")) == f"{name} is empty"
    assert refusal(more=((name, dict(GOOD)[name]),)) == f"{name} occurs twice"


def test_unknown_parameters_are_ignored() -> None:
    """[WS-005]"""
    assert read(more=(("foo", "bar"), ("hub.foo", "bar"), ("foo", "again"))) == read()


@pytest.mark.parametrize(
    "more",
    [(("hub.url", TOPIC),), tuple([("hub.url", TOPIC)] * 6), (("hub.topic", TOPIC),)],
    ids=["url", "six", "topic"],
)
def test_publish_requests_are_refused(more: tuple[tuple[str, str], ...]) -> None:
    """[WS-006] [SF-083] It would have to fetch the feed of somebody else."""
    body = urlencode([("hub.mode", "publish"), *more]).encode()
    with pytest.raises(
        HubRequestError, match=r'hub\.mode is "publish": this hub serves only the feeds of its own server'
    ):
        read_request(body)


@pytest.mark.parametrize("mode", ["list", "Subscribe", "denied"])
def test_other_modes_are_refused(mode: str) -> None:
    """[WS-006]"""
    assert refusal(("hub.mode", mode)) == "hub.mode must be subscribe or unsubscribe"


@pytest.mark.parametrize(
    ("callback", "reason"),
    [
        ("http://reader.example/#x", "has a fragment"),
        ("ftp://reader.example/", "must begin with http:// or https:// and a host"),
        ("javascript:alert(1)", "must begin with http:// or https:// and a host"),
        ("//reader.example/", "must begin with http:// or https:// and a host"),
        ("http:///x", "must begin with http:// or https:// and a host"),
        ("http://reader.example:0/", "must begin with http:// or https:// and a host"),
        ("http://u:p@reader.example/", "must have neither user nor password"),
        ("http://reader.example:99999/", "is not a web address"),
        ("http://[::1/", "is not a web address"),
        ("http://reader.example/a b", "has characters that addresses must escape with a percent sign"),
        ("http://reader.example/é", "has characters that addresses must escape with a percent sign"),
        ("http://reader.example/" + "x" * 2_027, "is longer than 2048 bytes"),
    ],
)
def test_callback_that_no_delivery_can_go_to_is_refused(callback: str, reason: str) -> None:
    """[WS-010] [WS-011]"""
    assert refusal(("hub.callback", callback)).startswith(f"hub.callback {reason}")


def test_longest_callback_is_accepted() -> None:
    """[WS-011]"""
    callback = "http://reader.example/" + "x" * 2_026
    assert (len(callback), read(("hub.callback", callback)).callback) == (2_048, callback)


def test_secret_is_bounded_in_bytes() -> None:
    """[WS-014]"""
    assert read(("hub.secret", "é" * 99 + "x")).secret == "é" * 99 + "x"
    assert refusal(("hub.secret", "é" * 100)) == "hub.secret is longer than 199 bytes"
    assert read(("hub.secret", "")).secret == ""


def test_lease_is_a_positive_number() -> None:
    """[WS-015]"""
    assert [read(("hub.lease_seconds", text)).lease_s for text in ("7200", "007", "")] == [7_200, 7, None]
    assert read(("hub.lease_seconds", "9" * 400)).lease_s == int("9" * 18)
    for text in ("-1", "ten", "0", "00", "1.5", "١"):
        assert refusal(("hub.lease_seconds", text)) == "hub.lease_seconds must be a positive whole number"


@pytest.mark.parametrize(
    ("values", "at_once"),
    [
        (("sync",), True),
        (("async",), False),
        (("sync", "async"), True),
        (("async", "sync"), False),
        (("x", "sync"), True),
        (("x,async,sync",), False),
        ((" sync , async",), True),
    ],
)
def test_first_known_word_of_verify_decides(values: tuple[str, ...], at_once: bool) -> None:
    """[WS-020] A request with hub.verify is in the dialect of PubSubHubbub 0.3 (WD-1)."""
    request = read(more=tuple(("hub.verify", value) for value in values))
    assert (request.at_once, request.dialect) == (at_once, HubDialect.PUBSUBHUBBUB)


def test_verify_without_a_known_word_is_refused() -> None:
    """[WS-020]"""
    assert refusal(more=(("hub.verify", "x"),)) == "hub.verify must have one of the words sync and async"
    assert refusal(more=(("hub.verify", ""),)) == "hub.verify must have one of the words sync and async"


def test_body_that_is_no_form_in_utf8_is_refused() -> None:
    """[WS-001] [WS-022]"""
    for body in (b"\xff\xfe", b"hub.mode=%FF", b"&".join(b"a%d=1" % number for number in range(300))):
        with pytest.raises(HubRequestError, match="the body is not a form in UTF-8, or has too many parameters"):
            read_request(body)


@pytest.mark.parametrize(
    ("callback", "start"),
    [
        ("http://r.example/cb", "http://r.example/cb?hub.mode="),
        ("http://r.example/cb?", "http://r.example/cb?hub.mode="),
        ("http://r.example/cb?hub.mode=x&a=%20b", "http://r.example/cb?hub.mode=x&a=%20b&hub.mode="),
        ("http://r.example/%2F?a=%C3%A9&b=+&c=;&d=&a=2", "http://r.example/%2F?a=%C3%A9&b=+&c=;&d=&a=2&hub.mode="),
    ],
)
def test_parameters_follow_those_of_the_callback(callback: str, start: str) -> None:
    """[WS-012] [WS-013]"""
    assert question_url(callback, TOPIC, HubQuestion(Mode.SUBSCRIBE), "c").startswith(start)


def test_check_has_the_form_of_the_golden_values() -> None:
    """[WS-031]"""
    golden = GOLDEN["http"]["subscribe"]["verification"].removeprefix("GET ")
    topic = "http://feeds.example/articles/1/comments/?order=created"
    question = HubQuestion(Mode.SUBSCRIBE, lease_s=864_000)
    assert question_url("http://mysite.example.com/push-handler", topic, question, "c0ffee") == golden


def test_verify_token_is_sent_only_if_there_was_one() -> None:
    """[WS-021]"""
    question = HubQuestion(Mode.SUBSCRIBE, verify_token="a&b c")
    assert question_url(CALLBACK, TOPIC, question, "c").endswith("&hub.verify_token=a%26b%20c")
    assert "verify_token" not in question_url(CALLBACK, TOPIC, HubQuestion(Mode.SUBSCRIBE), "c")
    assert question_url(CALLBACK, TOPIC, HubQuestion(Mode.SUBSCRIBE, verify_token=""), "c").endswith("verify_token=")


def test_end_and_denial_have_no_lease() -> None:
    """[WS-044] [WS-047]"""
    end = question_url(CALLBACK, TOPIC, HubQuestion(Mode.UNSUBSCRIBE), "c")
    assert "hub.mode=unsubscribe" in end and "lease" not in end
    denial = question_url(CALLBACK, TOPIC, HubQuestion(Mode.DENIED, reason="The feed is gone"), "c")
    assert "hub.mode=denied" in denial and denial.endswith("&hub.reason=The%20feed%20is%20gone")
    assert "challenge" not in denial


def test_signatures_are_those_of_the_golden_values() -> None:
    """[WS-066]"""
    (golden,) = GOLDEN["http"]["push"]
    body = golden["body"].encode()
    assert sign("sha1", golden["secret"], body) == golden["x_hub_signature"]
    assert sign("sha256", golden["secret"], body) == golden["x_hub_signature_sha256"]
    assert sign("sha384", "s3cret", b"<feed/>").startswith("sha384=097a8d5f9d8c125e5f96e9ef")
    assert sign("sha512", "s3cret", b"<feed/>").startswith("sha512=3a22488314f4e55c92887f0b")


def test_method_of_the_signature_follows_the_dialect() -> None:
    """[WS-067]"""
    assert [dialect.method for dialect in HubDialect] == ["sha256", "sha1"]


def test_stored_texts_are_read_back() -> None:
    terms = HubTerms("atom", "q=é", HubDialect.PUBSUBHUBBUB, "s3cret")
    question = HubQuestion(Mode.SUBSCRIBE, "n", terms, 60, "token", "alice@x", "abc", 1, "")
    assert HUB_TERMS.read(HUB_TERMS.write(terms)) == terms
    assert HUB_QUESTION.read(HUB_QUESTION.write(question)) == question
    assert HUB_QUESTION.read(HUB_QUESTION.write(HubQuestion(Mode.DENIED, reason="gone"))) == HubQuestion(
        Mode.DENIED, reason="gone"
    )
    assert json.loads(HUB_QUESTION.write(question))["terms"]["dialect"] == "0.3"


def test_secrets_are_not_in_the_text_of_values() -> None:
    """[WS-076]"""
    request = read(("hub.secret", "s3cret"), more=(("hub.verify", "sync"), ("hub.verify_token", "t0ken")))
    question = HubQuestion(Mode.SUBSCRIBE, terms=HubTerms("", "", secret="s3cret"), verify_token="t0ken")
    for text in (repr(request), repr(question)):
        assert "s3cret" not in text and "t0ken" not in text and "5tV0k" not in text
