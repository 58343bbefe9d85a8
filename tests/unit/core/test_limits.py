"""Bounds on how often peers may ask (xep-map 249)."""

from smartfeeds.core.jid import Jid
from smartfeeds.core.limits import Rate, RateLimits, TokenBuckets
from support.faketime import FakeTime

ALICE = Jid("alice", "example.org", "home")
ALICE_ELSEWHERE = Jid("alice", "example.org", "work")
BOB = Jid("bob", "example.org")
CAROL = Jid("carol", "example.net")


def test_buckets_burst_then_rate_then_full_again() -> None:
    time = FakeTime()
    buckets = TokenBuckets(Rate(per_s=2.0, burst=3.0), clock=time.clock)

    for _ in range(3):
        assert buckets.has("a")
        buckets.take("a")
    assert not buckets.has("a")
    time.now_s += 0.49
    assert not buckets.has("a")
    time.now_s += 0.01
    assert buckets.has("a")
    time.now_s += 100.0
    for _ in range(3):
        assert buckets.has("a")
        buckets.take("a")
    assert not buckets.has("a")


def test_buckets_clock_stepping_back_takes_nothing_away() -> None:
    time = FakeTime()
    buckets = TokenBuckets(Rate(per_s=1.0, burst=2.0), clock=time.clock)
    buckets.take("a")

    time.now_s -= 500.0

    assert buckets.has("a")


def test_buckets_many_names_stay_within_bound() -> None:
    """A flood of new addresses costs no memory [xep-map 249]."""
    buckets = TokenBuckets(Rate(per_s=1.0, burst=1.0), clock=FakeTime().clock, remembered=100)

    for number in range(10_000):
        buckets.take(str(number))

    assert len(buckets) == 100


def test_rate_limits_domain_bound_holds_for_ever_new_senders() -> None:
    """[xep-map 249]"""
    limits = RateLimits(per_sender=Rate(1.0, 5.0), per_domain=Rate(1.0, 20.0), clock=FakeTime().clock)

    admitted = sum(limits.admit(Jid(f"u{number}", "flood.example")) for number in range(1_000))

    assert admitted == 20
    assert limits.admit(CAROL)
    assert not limits.admit(Jid("new", "flood.example"))


def test_rate_limits_refused_sender_costs_the_domain_nothing() -> None:
    limits = RateLimits(per_sender=Rate(1.0, 1.0), per_domain=Rate(1.0, 3.0), clock=FakeTime().clock)

    assert limits.admit(ALICE)
    assert not any(limits.admit(ALICE_ELSEWHERE) for _ in range(50))

    assert limits.admit(BOB)
    assert limits.refused == 50
