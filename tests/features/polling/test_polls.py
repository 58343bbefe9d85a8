"""When a source is requested, and what an answer makes of it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from smartfeeds.core.times import US_PER_S
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.polls import (
    DAY_S,
    HOUR_S,
    MINUTE_S,
    AnswerKind,
    PollAnswer,
    after_answer,
    allowed_us,
    interval_s,
    may_store_redirect,
    next_host_pause,
    paused,
    poll_refusal,
    resumed,
    validators_at,
)
from smartfeeds.features.polling.source import (
    DocumentHints,
    HostPause,
    PushKind,
    Source,
    SourceProgress,
    SourceSettings,
    SourceState,
    new_source,
)

T0 = 1_700_000_000 * US_PER_S
URL = "https://a.example/feed"
TAG = Validators(URL, '"1"')
MIDDLE = 0.5  # the chance that changes nothing


def source(url: str = URL, **settings: object) -> Source:
    return new_source("news", url, T0, SourceSettings(**settings))


def read(**changes: object) -> PollAnswer:
    return PollAnswer(AnswerKind.READ, **{"validators": TAG, **changes})


def fail(kind: AnswerKind, reason: str = "answered 500", **changes: object) -> PollAnswer:
    return PollAnswer(kind, reason, **changes)


def at(seconds: float) -> int:
    return T0 + int(seconds * US_PER_S)


def pause_s(one: Source, now_us: int) -> float:
    assert one.due_us is not None
    return (one.due_us - now_us) / US_PER_S


def after(one: Source, answer: PollAnswer, seconds: float = 0.0, chance: float = MIDDLE) -> Source:
    return after_answer(one, answer, at(seconds), chance)


def every(hours: float, count: int) -> tuple[int, ...]:
    return tuple(at(-hours * HOUR_S * number) for number in range(1, count + 1))


@pytest.mark.parametrize(
    ("times_us", "hours"),
    [
        pytest.param((), 1, id="no dates"),
        pytest.param(every(0.5, 20), 1, id="busy: the least interval"),
        pytest.param(every(12, 28)[:20], 6.0 * 240 / 240, id="twice a day: half of twelve hours"),
        pytest.param(every(24 * 30, 5), 24, id="once a month: a day"),
        pytest.param(every(1, 3), 1, id="a new feed: its own short history"),
    ],
)
def test_interval_follows_the_rhythm_of_the_items(times_us: tuple[int, ...], hours: float) -> None:
    """[SRC-021] Half the mean distance of the items of 14 days, between an hour and a day."""
    done = after(source(), read(times_us=times_us))

    assert pause_s(done, T0) == hours * HOUR_S


def test_interval_of_a_feed_that_falls_silent_grows() -> None:
    """[SRC-021] Without a new document, the rhythm is counted anew at each poll."""
    done = after(source(), read(times_us=every(2, 20)))
    assert interval_s(done, T0) == HOUR_S
    assert interval_s(done, at(20 * DAY_S)) == DAY_S


def test_operator_fixes_the_interval() -> None:
    """[SRC-021] [SRC-085] Five minutes at least."""
    assert pause_s(after(source(every_s=300), read(times_us=every(48, 3))), T0) == 300
    with pytest.raises(ConfigError, match="interval is 299 seconds"):
        source(every_s=299)


@pytest.mark.parametrize(
    ("hints", "fresh_s", "seconds"),
    [
        pytest.param({}, 600, 600, id="max-age of ten minutes"),
        pytest.param({}, 60, 600, id="ten minutes at least"),
        pytest.param({}, 7200, 7200, id="longer: not before"),
        pytest.param({}, 365 * DAY_S, DAY_S, id="a year: a day"),
        pytest.param({"ttl_s": 1800}, None, 1800, id="ttl"),
        pytest.param({"ttl_s": 1800, "period_s": 7200}, 600, 7200, id="the longest of several"),
        pytest.param({}, None, 3600, id="none"),
    ],
)
def test_hints_are_the_least_interval(hints: dict[str, int], fresh_s: int | None, seconds: int) -> None:
    """[SRC-022] [SRC-023] [SRC-024] [SRC-025] A hint makes a slow poll out of a fast one, and allows a faster one."""
    done = after(source(), read(hints=DocumentHints(**hints), fresh_s=fresh_s))

    assert pause_s(done, T0) == pytest.approx(max(seconds, seconds * 1.05 if hints or fresh_s else 0))


def test_hint_never_makes_a_slow_feed_fast() -> None:
    """[SRC-024] A cache hint of minutes is a permission: a blog with a post a month is polled once a day."""
    assert pause_s(after(source(), read(times_us=every(24 * 30, 5), fresh_s=300)), T0) == DAY_S


def test_no_poll_comes_before_the_time_that_a_server_named() -> None:
    """[SRC-025] [SRC-027] Chance only adds to a hint."""
    pauses = [pause_s(after(source(), read(fresh_s=7200), 0, chance), T0) for chance in (0.0, 0.5, 1.0)]

    assert pauses == [7200, 7560, 7920]


def test_polls_are_spread_by_a_tenth() -> None:
    """[SRC-027] A thousand sources that were polled together are not together at the next poll; 30 minutes at most."""
    pauses = [pause_s(after(source(), read(), 0, number / 999), T0) for number in range(1_000)]
    assert (min(pauses), max(pauses)) == (3240, 3960)
    assert len({int(pause) for pause in pauses}) > 500
    slow = after(source(), read(times_us=every(24 * 30, 5)), 0, 1.0)
    assert pause_s(slow, T0) == DAY_S + 30 * MINUTE_S


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * US_PER_S


@pytest.mark.parametrize(
    ("hints", "due", "allowed"),
    [
        pytest.param({}, "2024-03-04T23:10:00", "2024-03-04T23:10:00", id="nothing skipped"),
        pytest.param({"skip_hours": (23, 0)}, "2024-03-04T23:10:00", "2024-03-05T01:10:00", id="hour 23 and 24"),
        pytest.param({"skip_days": (0,)}, "2024-03-04T10:10:00", "2024-03-05T00:10:00", id="a day"),
        pytest.param({"skip_days": (5, 6)}, "2024-03-09T10:10:00", "2024-03-10T10:10:00", id="two days: a day at most"),
        pytest.param(
            {"skip_hours": tuple(range(24))}, "2024-03-04T23:10:00", "2024-03-04T23:10:00", id="all hours: ignored"
        ),
        pytest.param(
            {"skip_days": tuple(range(7))}, "2024-03-04T23:10:00", "2024-03-04T23:10:00", id="all days: ignored"
        ),
    ],
)
def test_skipped_hours_and_days_are_passed_over(hints: dict[str, tuple[int, ...]], due: str, allowed: str) -> None:
    """[SRC-026] [RSS-032] [A-138] GMT, a day at most."""
    assert allowed_us(moment(due), DocumentHints(**hints)) == moment(allowed)


def test_operator_may_ignore_skipped_hours() -> None:
    """[SRC-026] [SRC-085]"""
    hints = DocumentHints(skip_hours=tuple(range(1, 24)))
    assert pause_s(after(source(), read(hints=hints)), T0) > HOUR_S
    assert pause_s(after(source(ignore_skips=True), read(hints=hints)), T0) == HOUR_S


@pytest.mark.parametrize(
    ("push", "times_us", "hours"),
    [
        pytest.param(PushKind.HUB, every(0.1, 20), 24, id="hub"),
        pytest.param(PushKind.CLOUD, every(0.1, 20), 6, id="cloud of a busy feed"),
        pytest.param(PushKind.CLOUD, every(24 * 30, 3), 24, id="cloud of a slow feed"),
    ],
)
def test_pushed_source_is_polled_rarely(push: PushKind, times_us: tuple[int, ...], hours: float) -> None:
    """[SRC-031]"""
    one = replace(source(), progress=SourceProgress(push=push))

    assert pause_s(after(one, read(times_us=times_us)), T0) == hours * HOUR_S


def test_validators_are_left_out_once_a_week() -> None:
    """[SRC-008] Some servers answer 304 for ever."""
    assert validators_at(source(), T0) == NO_VALIDATORS
    done = after(source(), read())
    unchanged = after(done, PollAnswer(AnswerKind.UNCHANGED, validators=TAG), 6 * DAY_S)
    assert validators_at(unchanged, at(7 * DAY_S - 1)) == TAG
    assert validators_at(unchanged, at(7 * DAY_S)) == NO_VALIDATORS


def test_304_renews_validators_and_hints() -> None:
    """[SRC-007] Hints of the document stay; those of the response are replaced if the 304 has some."""
    done = after(source(), read(hints=DocumentHints(ttl_s=1200), fresh_s=7200))
    tag = Validators(URL, '"2"')
    same = after(done, PollAnswer(AnswerKind.UNCHANGED, validators=tag), 10)
    assert (same.progress.validators, same.progress.fresh_s, same.progress.hints.ttl_s) == (tag, 7200, 1200)
    other = after(done, PollAnswer(AnswerKind.UNCHANGED, validators=tag, fresh_s=900), 10)
    assert (other.progress.fresh_s, other.progress.hints.ttl_s) == (900, 1200)


def test_failures_slow_a_source_and_a_good_answer_ends_it() -> None:
    """[SRC-040] [SRC-046] [SRC-047] From 30 minutes to a day; the operator is told after a day."""
    one, now_s, pauses, said_s = after(source(), read()), 0.0, [], None
    for _ in range(10):
        one = after(one, fail(AnswerKind.FAILED), now_s)
        assert (one.state, one.reason, one.since_us) == (SourceState.SLOWED, "answered 500", T0)
        said_s = now_s if one.progress.said and said_s is None else said_s
        pauses.append(pause_s(one, at(now_s)) / HOUR_S)
        now_s += pauses[-1] * HOUR_S
    assert pauses == [0.5, 1, 2, 4, 8, 16, 24, 24, 24, 24]
    assert said_s == 31.5 * HOUR_S
    good = after(one, read(), now_s)
    assert (good.state, good.reason, pause_s(good, at(now_s))) == (SourceState.POLLED, "", HOUR_S)
    assert (good.progress.failures, good.progress.said, good.good_us) == (0, False, at(now_s))


def test_client_errors_stop_a_source_after_a_month() -> None:
    """[SRC-039] Doubling from an hour to a day, told after three days, then a last try each week."""
    one, now_s, states = source(), 0.0, []
    for _ in range(40):
        one = after(one, fail(AnswerKind.REFUSED, "answered 404"), now_s)
        states.append((one.state, one.progress.said, pause_s(one, at(now_s)) / DAY_S, now_s / DAY_S))
        now_s += pause_s(one, at(now_s))
    assert [round(pause * 24) for _, _, pause, _ in states[:6]] == [1, 2, 4, 8, 16, 24]
    assert next(day for _, said, _, day in states if said) >= 3
    first_stop = next(place for place, state in enumerate(states) if state[0] is SourceState.STOPPED)
    assert 30 <= states[first_stop][3] < 32
    assert all((state, pause) == (SourceState.STOPPED, 7) for state, _, pause, _ in states[first_stop:])
    assert after(one, read(), now_s).state is SourceState.POLLED


def test_operator_is_told_of_the_third_unreadable_document() -> None:
    """[SRC-044]"""
    one = source()
    said = []
    for number in range(4):
        one = after(one, fail(AnswerKind.UNREADABLE, "line 3: mismatched tag"), number * HOUR_S)
        said.append(one.progress.said)
    assert said == [False, False, True, True]
    assert one.reason == "line 3: mismatched tag"


def test_second_410_a_day_later_stops_the_source() -> None:
    """[SRC-038] Only the operator polls it again."""
    first = after(source(), fail(AnswerKind.GONE, "answered 410"))
    assert (first.state, pause_s(first, T0)) == (SourceState.SLOWED, pytest.approx(1.05 * DAY_S))
    early = after(first, fail(AnswerKind.GONE, "answered 410"), 60)
    assert early.state is SourceState.SLOWED and early.due_us == first.due_us
    second = after(first, fail(AnswerKind.GONE, "answered 410"), 1.05 * DAY_S)
    assert (second.state, second.due_us, second.progress.said) == (SourceState.STOPPED, None, True)
    assert resumed(second, at(5)).due_us == at(5)


def test_410_between_good_answers_stops_nothing() -> None:
    """[SRC-038]"""
    one = after(after(source(), fail(AnswerKind.GONE, "answered 410")), read(), DAY_S)
    again = after(one, fail(AnswerKind.GONE, "answered 410"), 2 * DAY_S)
    assert one.state is SourceState.POLLED and again.state is SourceState.SLOWED


NEW = "https://b.example/feed"


def test_permanent_redirect_is_stored_when_two_polls_a_day_apart_agree() -> None:
    """[SRC-034] [SRC-037] The first address stays that of the item ids, the old one stays in the record."""
    one = after(source(), read(moved_to=NEW))
    one = after(one, read(moved_to=NEW), HOUR_S)
    assert one.url == URL
    one = after(one, PollAnswer(AnswerKind.UNCHANGED, validators=TAG, moved_to=NEW), DAY_S)
    assert (one.url, one.first_url, one.host) == (NEW, URL, "b.example:443")
    assert one.progress.former_urls == (URL,) and one.progress.moved is None


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(read(), id="an answer without redirect"),
        pytest.param(read(moved_to="https://c.example/"), id="another target"),
    ],
)
def test_redirects_that_change_are_not_stored(between: PollAnswer) -> None:
    """[SRC-034]"""
    one = after(source(), read(moved_to=NEW))
    one = after(after(one, between, HOUR_S), read(moved_to=NEW), 2 * DAY_S)
    assert one.url == URL


def test_redirect_to_what_is_no_feed_is_never_stored() -> None:
    """[SRC-034] [SRC-043] The portal of a hotel redirects everything to its own page."""
    one = source()
    for day in range(5):
        one = after(
            one, fail(AnswerKind.UNREADABLE, "this is a web page", moved_to="https://portal.example/"), day * DAY_S
        )
    assert one.url == URL and one.progress.moved is None


@pytest.mark.parametrize(
    ("url", "target", "is_allowed", "is_stored"),
    [
        (URL, NEW, True, True),
        ("http://a.example/", NEW, True, True),
        (URL, "http://b.example/feed", True, False),
        (URL, "https://user@b.example/feed", True, False),
        (URL, NEW, False, False),
        (URL, f"https://b.example/{'a' * 2_048}", True, False),
    ],
)
def test_unsafe_targets_are_followed_and_not_stored(url: str, target: str, is_allowed: bool, is_stored: bool) -> None:
    """[SRC-035]"""
    assert may_store_redirect(url, target, is_allowed=is_allowed) is is_stored


def test_pause_of_a_host_is_no_failure() -> None:
    """[SRC-041] [SRC-042]"""
    one = after(source(), read())
    busy = after(one, fail(AnswerKind.BUSY, "answered 429", paused_until_us=at(1_000)))
    assert (busy.state, busy.progress.failures, busy.reason) == (SourceState.WAITING, 0, "answered 429")
    assert busy.due_us is not None and at(1_000) <= busy.due_us <= at(1_100)


def test_host_without_a_time_waits_longer_each_time() -> None:
    """[SRC-041] An hour, doubling to a day; a time of its own counts, up to seven days."""
    pause, hours = None, []
    for _ in range(7):
        pause = next_host_pause(pause, "a.example:443", None, T0)
        hours.append((pause.until_us - T0) / US_PER_S / HOUR_S)
    assert hours == [1, 2, 4, 8, 16, 24, 24]
    assert next_host_pause(pause, "a.example:443", 90.0, T0) == HostPause("a.example:443", at(90))
    assert next_host_pause(None, "a.example:443", 1e9, T0).until_us == at(7 * DAY_S)


def test_poll_by_request_obeys_pauses_and_comes_once_a_minute() -> None:
    """[SRC-030]"""
    done = after(source(), read())
    assert "less than 60 seconds ago" in poll_refusal(done, None, at(59))
    assert poll_refusal(done, None, at(60)) == ""
    assert poll_refusal(source(), None, T0) == ""
    assert "pause of 40 more seconds" in poll_refusal(done, HostPause("a.example:443", at(140)), at(100))
    assert poll_refusal(done, HostPause("a.example:443", at(99)), at(100)) == ""
    assert "paused" in poll_refusal(paused(done, "alice@example.org", at(1)), None, at(100))
    assert paused(done, "alice@example.org", at(1)).reason == "paused by alice@example.org"


@pytest.mark.parametrize(
    "url",
    [
        "feed",
        "ftp://a.example/",
        "https://",
        "https://a.example:port/",
        "https://a b.example/",
        f"https://a/{'x' * 2048}",
    ],
)
def test_address_that_cannot_be_requested_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        source(url)


def test_login_in_the_address_becomes_a_setting() -> None:
    """[SRC-014] [SRC-015] No list shows it; the other bytes of the address stay, and the fragment goes."""
    one = source("https://me:p%40ss@a.example/f?q=%2f&e=&p=+#top")

    assert one.url == one.first_url == "https://a.example/f?q=%2f&e=&p=+"
    assert (one.settings.user, one.settings.password) == ("me", "p@ss")


@pytest.mark.parametrize("query", ["kind=new", "order=created", "nothing=1", "category", "max=3"])
def test_filter_that_selects_by_no_content_is_refused(query: str) -> None:
    """[SRC-085]"""
    with pytest.raises(ConfigError, match="cannot be used"):
        source(only=query)
