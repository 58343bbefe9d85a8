"""HTTP for every input: addresses go there and back, queries and Accept headers are read or refused, never more."""

import json
import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from hypothesis import example, given
from hypothesis import strategies as st

from smartfeeds.app.site import feed_forms
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.urls import entry_path, feed_path
from smartfeeds.core.view import PARAMETERS, RESERVED_PARAMETERS
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom_feed import link_text
from smartfeeds.formats.representation import Representation
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import credential_of
from smartfeeds.http.encode import PageAddress, in_callback
from smartfeeds.http.http_errors import STATUSES, HttpError, error_reply
from smartfeeds.http.paths import PathTemplate, decode_value
from smartfeeds.http.queries import FeedQuery, read_query
from support.routes import TABLE

FORMS = feed_forms()
SUFFIX = frozenset(FORMS.suffixes)
# In the order in which the router tries them.
TEMPLATES = sorted(
    (PathTemplate(path, FORMS.suffixes) for path in dict.fromkeys(route.path for route in TABLE) if "{" in path),
    key=lambda template: -template.fixed_length,
)
# Names and ids as nodes and items have them, with everything in them that means something in an address.
TEXTS = st.one_of(
    st.text(st.sampled_from("a/.?#%&=+;: \\\"'<>\n\u2028é\U0001f600~*@"), min_size=1, max_size=12),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=40),
).filter(lambda text: len(text.encode()) <= MAX_ID_BYTES)
# What stands in a raw path: any bytes that a parser of HTTP lets through.
RAW = st.text(st.sampled_from("abz09/.%25fFeE0-_~!$&'()*+,;=:@\\?"), max_size=40)
SAFE = re.compile(r"[\x21-\x7e]*")


def resolve(path: str) -> tuple[str, dict[str, str]] | None:
    """The template of the route that a path is for, and the values in it; None for a path that names nothing."""
    for template in TEMPLATES:
        if (values := template.match(path)) is not None:
            try:
                return template.text, {name: decode_value(raw) for name, raw in values.items()}
            except FeedError:
                return None
    return None


@given(TEXTS)
@example("..")
@example(".")
@example("/")
@example("a//b")
@example("../../etc/passwd")
@example("a.rss")
@example("%2F")
@example("a\r\nX: y")
def test_an_address_of_a_feed_leads_to_this_feed(name: str) -> None:
    """[SF-057] Also behind a client that tidies dots and slashes; one line of printable ASCII."""
    path = feed_path(name)
    assert resolve(path) == ("/feeds/{name}/", {"name": name})
    assert SAFE.fullmatch(path) and "?" not in path and "#" not in path
    assert urlsplit(f"http://a{path}").path == path
    segments = path.removeprefix("/feeds/").removesuffix("/").split("/")
    assert not {"", ".", ".."} & set(segments)


@given(TEXTS, st.sampled_from(sorted(SUFFIX)))
def test_an_address_of_a_document_leads_to_this_document(name: str, suffix: str) -> None:
    """[SF-112] The suffix that was added, and no other dot."""
    assert resolve(feed_path(name, suffix)) == ("/feeds/{name}.{suffix}", {"name": name, "suffix": suffix})


@given(TEXTS, TEXTS)
def test_an_address_of_an_item_leads_to_this_item(name: str, item_id: str) -> None:
    """[SF-065] Slashes of an id never make another feed of it."""
    assert resolve(entry_path(name, item_id)) == ("/entries/{name}/{id}", {"name": name, "id": item_id})
    assert SAFE.fullmatch(entry_path(name, item_id))


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_two_items_share_an_address(name: str, item_id: str, other: str, other_id: str) -> None:
    assert (entry_path(name, item_id) == entry_path(other, other_id)) == ((name, item_id) == (other, other_id))


@given(TEXTS, RAW, TEXTS, st.sampled_from(["", "5", " 50 "]))
def test_address_of_a_page_in_atom_is_written_in_two_parts(name: str, view: str, until: str, size: str) -> None:
    """A document writes what all pages of a view have in common once."""
    place = PageAddress("http://a.example", name, FeedQuery(view, max=size or None))
    position = place.position("cursor:1_0_00000000", until)
    both = f"{link_text(place.start_of_pages())}{position.replace('&', '&amp;')}"
    assert both == link_text(place.page_url(since="cursor:1_0_00000000", until=until))


@given(RAW)
def test_a_raw_path_names_one_feed_or_none(rest: str) -> None:
    """[design 5] Reading never fails; what it names has the address that says the same."""
    resolved = resolve(f"/feeds/{rest}")
    if resolved is not None and resolved[0] != "/feeds/{name}":
        _, values = resolved
        assert values["name"] and "\0" not in values["name"] and len(values["name"].encode()) <= MAX_ID_BYTES
        assert resolve(feed_path(values["name"], values.get("suffix", ""))) == resolved
    resolved = resolve(f"/entries/{rest}")
    if resolved is not None:
        assert resolve(entry_path(resolved[1]["name"], resolved[1].get("id", ""))) == resolved


FIELD = st.tuples(
    st.sampled_from([*sorted(RESERVED_PARAMETERS), "order", "author", "category", "q", "kind", "other", ""]),
    st.one_of(
        st.sampled_from(["", "0", "5", "-1", "created", "modified", "new", "cursor:1_0_a", "time:1", "app.cb", "a b"]),
        st.text(max_size=8),
    ),
)


def encoded(fields: list[tuple[str, str]]) -> str:
    return "&".join(f"{name}={quote(value.encode('utf-8', 'replace'), safe='')}" for name, value in fields)


def read(raw: str) -> FeedQuery | None:
    """The query, None where it is refused, which must be with 400 and in our words."""
    try:
        return read_query(raw)
    except FeedError as error:
        refused = error
    assert refused.condition is Condition.BAD_REQUEST
    assert refused.text and refused.text.isascii()
    return None


@given(st.lists(FIELD, max_size=6))
def test_a_query_is_taken_apart_and_nothing_is_lost(fields: list[tuple[str, str]]) -> None:
    """[SF-054] [SF-057] [A-24] The names of the pull here, those of the view in the base URL, no others; each of
    the five at most once."""
    raw = encoded(fields)
    found = read(raw)
    if found is None:
        return
    sent = parse_qsl(raw, keep_blank_values=True)
    assert parse_qsl(found.view, keep_blank_values=True) == [pair for pair in sent if pair[0] in PARAMETERS]
    own = dict(pair for pair in sent if pair[0] in RESERVED_PARAMETERS)
    assert (found.since, found.until, found.max) == (own.get("since"), own.get("until"), own.get("max"))
    assert found.callback == own.get("callback", "")
    assert (found.timeout_s is None) == ("timeout" not in own)


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=60))
def test_any_query_is_read_or_refused(raw: str) -> None:
    """[design 5] No other failure."""
    read(raw)


@given(st.lists(FIELD, max_size=4), TEXTS, st.text("0123456789_abcdef", min_size=1, max_size=20))
def test_the_next_page_is_a_page_of_the_same_view(fields: list[tuple[str, str]], name: str, cursor: str) -> None:
    """[SF-062] [SF-064] [A-10] The address of a page is read as the same view and length, from that cursor."""
    query = read(encoded(fields))
    if query is None:
        return
    place = PageAddress("http://feeds.example", name, query)
    split = urlsplit(place.page_url(since=f"cursor:{cursor}"))
    again = read(split.query)
    assert again is not None
    assert (again.view, again.since, again.max) == (query.view, f"cursor:{cursor}", query.max)
    assert (again.timeout_s, again.callback, again.until) == (None, "", None)
    assert resolve(split.path) == ("/feeds/{name}/", {"name": name})
    base = urlsplit(place.base_url)
    assert (base.path, base.query) == (feed_path(name), query.view)


KINDS = ["*/*", "application/*", "text/*", "application/json", "application/atom+xml", "text/html", "text/event-stream"]
RANGE = st.one_of(st.sampled_from(KINDS), st.text(st.characters(max_codepoint=0xFF), max_size=12))
WEIGHT = st.sampled_from(["", ";q=0", ";q=0.5", ";q=1", ";q=1.000", ";q=nan", ";q=", ";level=1;q=0.2", " ; Q=0.7"])


@given(st.lists(st.tuples(RANGE, WEIGHT), max_size=8), st.sampled_from([FORMS.of_feed, FORMS.of_list, n.OF_ENTRY]))
def test_any_accept_header_gets_an_offered_form_or_none(
    ranges: list[tuple[str, str]], offered: tuple[Representation, ...]
) -> None:
    """[SF-058] A stream only for who names it; what is refused by its own name never comes."""
    accept = ",".join(kind + weight for kind, weight in ranges)
    chosen = n.choose(accept, offered)
    assert chosen is None or chosen in offered
    if chosen is n.EVENTS:
        assert "text/event-stream" in accept.lower()
    for form in offered:
        assert n.choose(f"{form.accept_types[0]};q=0, */*", offered) is not form
        assert n.choose(f"*/*;q=0.1, {form.accept_types[0]}", offered) is form
    n.takes_gzip(accept)


@given(st.text(max_size=80))
@example("Basic é")
@example("Bearer \u0660")
def test_any_authorization_is_a_token_or_refused(header: str) -> None:
    """[SF-110] 401 and nothing else."""
    try:
        assert bool(credential_of(header)) == bool(header)
    except HttpError as error:
        refused = error
    else:
        return
    assert refused.status == 401


@given(st.sampled_from(Condition), st.text(max_size=40), st.booleans())
def test_any_error_is_a_problem(condition: Condition, text: str, anonymous: bool) -> None:
    """RFC 9457: the status of the table, whoever asks; never stored."""
    reply = error_reply(FeedError(condition, text), anonymous=anonymous)
    problem = json.loads(reply.body)
    assert (
        problem["status"] == reply.status == (401 if anonymous and STATUSES[condition] == 403 else STATUSES[condition])
    )
    assert problem["condition"] == condition.value
    assert reply.media_type == "application/problem+json"
    assert reply.headers["Cache-Control"] == "no-store"
    assert (reply.status == 401) == ("WWW-Authenticate" in reply.headers)
    assert not any("\r" in value or "\n" in value for value in reply.all_headers().values())


@given(st.text())
@example("</script>")
@example("\u2028\u2029")
def test_any_document_in_a_script_is_one_string(text: str) -> None:
    """[SF-059] [A-12] It ends nowhere before its end, in a script or in a page."""
    document = text.encode("utf-8", "replace")
    script = in_callback("f", document, text=True).decode()
    assert script.startswith("/**/f(") and script.endswith(");")
    literal = script.removeprefix("/**/f(").removesuffix(");")
    assert json.loads(literal) == document.decode()
    assert not re.search("[\r\n\u2028\u2029]", literal)


def test_names_are_read_as_they_were_quoted() -> None:
    assert unquote(feed_path("é/ü")) == "/feeds/é/ü/"
