"""Subscriptions of sources at hubs and clouds in every store: as they were put, and which are due."""

from dataclasses import replace

from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.push_links import PushOffer, PushTarget
from smartfeeds.features.polling.push_states import PollHint, PushState, SourcePush, mirror_source_no, new_push
from smartfeeds.features.polling.source import PushKind, SourceState, new_source
from smartfeeds.store.base import Store

T0 = 1_700_000_000_000_000


def target(host: str = "a.example", kind: PushKind = PushKind.HUB) -> PushTarget:
    return PushTarget(kind, f"https://{host}/hub", "https://blog.example/feed", "soap", "a.b")


async def add(store: Store, token: str, host: str = "a.example", source_no: int = 1, **changes: object) -> SourcePush:
    push = replace(new_push(source_no, PushOffer((target(host),)), token, "s", T0), **changes)
    return await store.write(lambda tx: source_push_rows.put(tx, push))


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
    await store.write(lambda tx: source_push_rows.put(tx, whole))

    assert await store.read(lambda tx: source_push_rows.push(tx, made.push_no)) == whole
    assert await store.read(lambda tx: source_push_rows.push_of_token(tx, "t1")) == whole
    assert await store.read(lambda tx: source_push_rows.push_of_token(tx, "t2")) is None
    assert await store.read(lambda tx: source_push_rows.pushes_of(tx, 1)) == [whole]
    assert await store.read(lambda tx: source_push_rows.has_active(tx, made.target.url))
    assert not await store.read(lambda tx: source_push_rows.has_active(tx, "https://b.example/"))
    assert await store.read(lambda tx: source_push_rows.states(tx)) == {PushState.ACTIVE: 1}
    await store.write(lambda tx: source_push_rows.remove(tx, made.push_no))
    assert await store.read(lambda tx: source_push_rows.pushes(tx, 0, 10)) == []


async def test_due_one_a_host(store: Store) -> None:
    """[WS-137]"""
    first = await add(store, "t1", due_us=T0 + 2)
    second = await add(store, "t2", due_us=T0 + 1)
    other = await add(store, "t3", "b.example", due_us=T0 + 3)
    await add(store, "t4", "c.example", due_us=None)
    assert await store.read(lambda tx: source_push_rows.due(tx, T0 + 9, 10)) == [second, other]
    assert await store.read(lambda tx: source_push_rows.due(tx, T0 + 1, 10)) == [second]
    assert await store.read(lambda tx: source_push_rows.next_due_us(tx)) == T0 + 1
    await store.write(lambda tx: source_push_rows.spread_overdue(tx, T0 + 100, 10))
    row = await store.read(lambda tx: source_push_rows.push(tx, first.push_no))
    assert row is not None and row.due_us is not None and T0 + 100 <= row.due_us <= T0 + 10_000_100


async def test_subscriptions_without_a_source(store: Store) -> None:
    """[WS-136] Of removed, paused and stopped sources; those that are over, or of a mirror, do not count."""
    numbers = []
    for place, state in enumerate((SourceState.POLLED, SourceState.PAUSED, SourceState.STOPPED, SourceState.SLOWED)):
        source = replace(new_source("news", f"https://blog.example/{place}", T0), state=state)
        numbers.append(await store.write(lambda tx, source=source: source_rows.add(tx, source)))
    rows = [await add(store, f"t{number}", source_no=number) for number in (*numbers, 99)]
    await add(store, "over", source_no=99, state=PushState.ENDED)
    mirror_no = mirror_source_no("a")
    mirrored = await add(store, "mirror", source_no=mirror_no, mirror="a")
    assert mirror_no < 0
    assert await store.read(lambda tx: source_push_rows.pushes_of(tx, mirror_no)) == [mirrored]
    assert await store.read(lambda tx: source_push_rows.without_source(tx, 10)) == [rows[1], rows[2], rows[4]]
