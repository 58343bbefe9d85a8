"""Subscriptions of sources at hubs and clouds in every store: as they were put, and which are due."""

from dataclasses import replace

from smartfeeds.core.push_targets import PushOffer, PushTarget
from smartfeeds.features.polling.push_states import PollHint, PushState, SourcePush, mirror_source_no, new_push
from smartfeeds.features.polling.source import PushKind, SourceState, new_source
from smartfeeds.store.base import Store

T0 = 1_700_000_000_000_000


def target(host: str = "a.example", kind: PushKind = PushKind.HUB) -> PushTarget:
    return PushTarget(kind, f"https://{host}/hub", "https://blog.example/feed", "soap", "a.b")


async def add(store: Store, token: str, host: str = "a.example", source_no: int = 1, **changes: object) -> SourcePush:
    push = replace(new_push(source_no, PushOffer((target(host),)), token, "s", T0), **changes)
    return await store.write(lambda tx: tx.put_source_push(push))


async def test_subscription_is_read_as_it_was_put(store: Store) -> None:
    """[WS-115] [RC-066] Lease, secret and path survive a restart."""
    made = await add(store, "t1")
    whole = replace(
        made,
        state=PushState.ACTIVE,
        reason="late",
        door="https://b.example/",
        others=(target("c.example", PushKind.CLOUD),),
        **dict.fromkeys(("asked_us", "ends_us", "active_us", "pushed_us", "pending_us", "since_us"), T0 + 1),
        **dict.fromkeys(("failures", "misses", "absences", "forgeries"), 2),
        hint=PollHint(T0, 1),
        has_secret=True,
        notify="https-post",
        cursor="1_2_3",
    )
    await store.write(lambda tx: tx.put_source_push(whole))

    assert await store.read(lambda tx: tx.source_push(made.push_no)) == whole
    assert await store.read(lambda tx: tx.source_push_of_token("t1")) == whole
    assert await store.read(lambda tx: tx.source_push_of_token("t2")) is None
    assert await store.read(lambda tx: tx.source_pushes_of(1)) == [whole]
    assert await store.read(lambda tx: tx.has_active_push(made.target.url))
    assert not await store.read(lambda tx: tx.has_active_push("https://b.example/"))
    assert await store.read(lambda tx: tx.source_push_states()) == {PushState.ACTIVE: 1}
    await store.write(lambda tx: tx.remove_source_push(made.push_no))
    assert await store.read(lambda tx: tx.source_pushes(0, 10)) == []


async def test_due_one_a_host(store: Store) -> None:
    """[WS-137]"""
    first = await add(store, "t1", due_us=T0 + 2)
    second = await add(store, "t2", due_us=T0 + 1)
    other = await add(store, "t3", "b.example", due_us=T0 + 3)
    await add(store, "t4", "c.example", due_us=None)
    assert await store.read(lambda tx: tx.source_pushes_due(T0 + 9, 10)) == [second, other]
    assert await store.read(lambda tx: tx.source_pushes_due(T0 + 1, 10)) == [second]
    assert await store.read(lambda tx: tx.next_source_push_due_us()) == T0 + 1
    await store.write(lambda tx: tx.spread_overdue_source_pushes(T0 + 100, 10))
    row = await store.read(lambda tx: tx.source_push(first.push_no))
    assert row is not None and row.due_us is not None and T0 + 100 <= row.due_us <= T0 + 10_000_100


async def test_subscriptions_without_a_source(store: Store) -> None:
    """[WS-136] Of removed, paused and stopped sources; those that are over, or of a mirror, do not count."""
    numbers = []
    for place, state in enumerate((SourceState.POLLED, SourceState.PAUSED, SourceState.STOPPED, SourceState.SLOWED)):
        source = replace(new_source("news", f"https://blog.example/{place}", T0), state=state)
        numbers.append(await store.write(lambda tx, source=source: tx.add_source(source)))
    rows = [await add(store, f"t{number}", source_no=number) for number in (*numbers, 99)]
    await add(store, "over", source_no=99, state=PushState.ENDED)
    mirror_no = mirror_source_no("a")
    mirrored = await add(store, "mirror", source_no=mirror_no, mirror="a")
    assert mirror_no < 0
    assert await store.read(lambda tx: tx.source_pushes_of(mirror_no)) == [mirrored]
    assert await store.read(lambda tx: tx.source_pushes_without_source(10)) == [rows[1], rows[2], rows[4]]
