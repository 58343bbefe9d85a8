"""Which parameters are ours, misspelt ones of ours, or those of others."""

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.parameter_names import nearest_name
from smartfeeds.http.queries import FeedQuery, read_parameters, read_query

KNOWN = (
    *("since", "until", "max", "timeout", "callback"),
    *("order", "author", "category", "in-reply-to", "kind", "lang", "q", "sync"),
)
MISSPELT_NAMES = {
    "order": "ordr oder oredr orderr Order ORDER order_ orders",
    "category": "catgory categry catagory cateogry Category categorry ctegory",
    "max": "Max MAX maxx mxa max_",
    "since": "since_ sinse snice Since _since",
    "until": "untill utnil",
    "timeout": "timout time_out timeuot",
    "callback": "calback call-back",
    "author": "auther athor autor",
    "in-reply-to": "in_reply_to inreplyto in-replyto In-Reply-To in-repli-to",
    "lang": "lan lagn langs Lang",
    "kind": "kidn kinds kind2",
    "q": "Q",
    "sync": "syn snyc synk",
}
MISSPELT = {name: known for known, names in MISSPELT_NAMES.items() for name in names.split()}
OF_OTHERS = [
    "utm_source",
    "utm_medium",
    "utm_campaign",
    "utm_content",
    "utm_term",
    "utm_id",
    "UTM_Source",
    "fbclid",
    "gclid",
    "gbraid",
    "wbraid",
    "dclid",
    "msclkid",
    "twclid",
    "ttclid",
    "yclid",
    "igshid",
    "igsh",
    "si",
    "mc_cid",
    "mc_eid",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "mkt_tok",
    "vero_id",
    "oly_enc_id",
    "ref",
    "ref_src",
    "referrer",
    "source",
    "src",
    "from",
    "via",
    "share",
    "shared",
    "amp",
    "_",
    "__",
    "cb",
    "cachebuster",
    "nocache",
    "rand",
    "rnd",
    "r",
    "t",
    "ts",
    "time",
    "v",
    "ver",
    "version",
    "x",
    "page",
    "p",
    "s",
    "q1",
    "sort",
    "limit",
    "count",
    "format",
    "id",
    "feed",
    "key",
    "map",
    "min",
    "mac",
    "colour",
    "language",
    "mode",
    "type",
    "tag",
    "date",
    "hl",
    "locale",
    "token",
    "__cf_chl_tk",
    "1700000000",
    "wt_mc",
    "trk",
    "cmpid",
    "ncid",
    "sr_share",
    "xtor",
    "at_medium",
    "campaign",
    "pk_kwd",
]


@pytest.mark.parametrize("name", MISSPELT)
def test_misspelt_name_is_refused_with_the_nearest_one(name: str) -> None:
    """[SF-024] [A-24]"""
    assert nearest_name(name, KNOWN) == MISSPELT[name]
    with pytest.raises(FeedError) as caught:
        read_query(f"max=1&{name}=x")
    assert caught.value.condition is Condition.BAD_REQUEST
    assert f"did you mean {MISSPELT[name]}?" in caught.value.text


@pytest.mark.parametrize("name", ["", "a" * 300, *OF_OTHERS])
def test_name_of_others_is_ignored(name: str) -> None:
    """[SF-024] [A-24]"""
    assert nearest_name(name, KNOWN) == ""
    for field in (f"{name}=x", name, f"{name}=%FF", f"{name}=1&{name}=2"):
        assert read_query(field) == FeedQuery()
        assert read_query(f"{field}&order=created&{field}&max=2&{field}") == FeedQuery("order=created", max="2")
        assert read_parameters(f"{field}&after=a&{field}", ("after",)) == {"after": "a"}


@pytest.mark.parametrize("raw", ["&", "&&", "=", "=x", "?", "??", "%FF=1", "%", "utm_source", "&fbclid=x&", "a=b=c"])
def test_remains_of_parameters_are_ignored(raw: str) -> None:
    """[A-24]"""
    assert read_query(raw) == FeedQuery()
    assert read_parameters(raw, ("after", "max")) == {}


def test_ampersands_that_are_escaped_twice_stay_as_they_were_written() -> None:
    """[SF-057]"""
    assert read_query("author=a&amp;order=created&amp;utm_source=x").view == "author=a&amp;order=created"


@pytest.mark.parametrize(
    ("raw", "view", "most"),
    [
        ("category=news?utm_source=x", "category=news", None),
        ("max=5?fbclid=x&utm_medium=y", "", "5"),
        ("category=news?max=5?ref=x", "category=news", "5"),
        ("q=why?", "q=why?", None),
        ("q=why%3Fmax=5", "q=why%3Fmax=5", None),
    ],
)
def test_second_question_mark_begins_a_field(raw: str, view: str, most: str | None) -> None:
    """[SF-024] Programs append their field to an address as if it had no query."""
    query = read_query(raw)
    assert (query.view, query.max) == (view, most)
