"""Registrations of callbacks in every store."""

from dataclasses import replace

from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.cloud_protocol import CloudCallback, CloudProtocol
from smartfeeds.features.callbacks.registration import Callback, host_of, number_of
from smartfeeds.features.cloud.requests import CLOUD
from smartfeeds.features.hub import protocol as websub
from smartfeeds.features.hub.protocol import HubQuestion, HubTerms, Mode
from smartfeeds.features.hub.requests import HUB
from smartfeeds.store.base import Store, WriteTx

QUESTION = websub.HUB_QUESTION.write(HubQuestion(Mode.DENIED))
READER = Callback(
    HUB.name, 1, "https://reader.example/cb", "https://feeds.example/feeds/news/", "reader.example", 10, 500
)
OTHER = replace(READER, topic="https://feeds.example/feeds/plans/", node_no=2, due_us=20, question=QUESTION)
PINGED = CloudCallback("http://pinged.example/cb", CloudProtocol.HTTP_POST)
PING = replace(READER, kind=CLOUD.name, url=PINGED.text, host="pinged.example", due_us=5, expires_us=400)
FULL = replace(
    *[replace(READER, url="https://full.example/")],
    reader="alice@x",
    token_id="abc",
    active=True,
    settings=websub.HUB_TERMS.write(HubTerms(".json", "", secret="s3cret")),
    question=QUESTION,
    due_us=30,
    tried_us=12,
    result="answered 503",
)


async def put(store: Store, *callbacks: Callback) -> list[Callback]:
    def work(tx: WriteTx) -> list[Callback]:
        return [callback_rows.put(tx, callback) for callback in callbacks]

    return await store.write(work)


async def test_callback_is_stored_found_and_replaced(store: Store) -> None:
    first, full = await put(store, READER, FULL)
    assert await store.read(lambda tx: callback_rows.callback(tx, full.callback_no)) == full
    assert full == replace(FULL, callback_no=full.callback_no)
    renewed = replace(first, expires_us=900, active=True)
    assert await put(store, renewed) == [renewed]
    assert await store.read(lambda tx: callback_rows.callback_for(tx, HUB, READER.url, READER.topic)) == renewed
    assert await store.read(lambda tx: callback_rows.callback_for(tx, CLOUD, READER.url, READER.topic)) is None


async def test_callbacks_are_paged_by_kind(store: Store) -> None:
    first, other, ping = await put(store, READER, OTHER, PING)
    assert await store.read(lambda tx: callback_rows.callbacks(tx, HUB, 0, 1)) == [first]
    assert await store.read(lambda tx: callback_rows.callbacks(tx, HUB, first.callback_no, 9)) == [other]
    assert await store.read(lambda tx: callback_rows.callbacks(tx, CLOUD, 0, 9)) == [ping]


async def test_due_questions_come_in_the_order_of_their_time(store: Store) -> None:
    _, other, _, full = await put(store, READER, OTHER, PING, FULL)
    assert await store.read(lambda tx: callback_rows.due(tx, HUB, 19, 9)) == []
    assert await store.read(lambda tx: callback_rows.due(tx, HUB, 30, 9)) == [other, full]
    assert await store.read(lambda tx: callback_rows.due(tx, HUB, 30, 1)) == [other]
    (elsewhere,) = await put(store, replace(FULL, url="https://full.example/2", host="full.example", due_us=29))
    assert await store.read(lambda tx: callback_rows.due(tx, HUB, 30, 9, without_hosts={READER.host})) == [elsewhere]
    await store.write(lambda tx: callback_rows.remove(tx, elsewhere.callback_no))
    await put(store, *(replace(callback, due_us=None) for callback in (other, full)))
    assert await store.read(lambda tx: callback_rows.due(tx, HUB, 30, 9)) == []


async def test_callbacks_that_have_ended_are_found_in_the_order_of_their_end(store: Store) -> None:
    first, ping = await put(store, READER, PING)
    assert await store.read(lambda tx: callback_rows.ended(tx, 399, 9)) == []
    assert await store.read(lambda tx: callback_rows.ended(tx, 500, 9)) == [ping, first]
    await store.write(lambda tx: callback_rows.remove(tx, ping.callback_no))
    assert await store.read(lambda tx: callback_rows.ended(tx, 500, 9)) == [first]


async def test_callbacks_are_counted(store: Store) -> None:
    await put(store, READER, OTHER, PING)

    def counts(tx: WriteTx) -> tuple[int, ...]:
        node, host = callback_rows.count(tx, HUB, node_no=1), callback_rows.count(tx, HUB, host="reader.example")
        return node, host, callback_rows.count(tx, HUB), callback_rows.count(tx, CLOUD, host="reader.example")

    assert await store.write(counts) == (1, 2, 2, 0)


async def test_last_deliveries_are_stored(store: Store) -> None:
    (first,) = await put(store, READER)
    await store.write(
        lambda tx: callback_rows.note_deliveries(tx, [(first.callback_no, 77, "answered 200"), (999, 1, "")])
    )
    stored = await store.read(lambda tx: callback_rows.callback(tx, first.callback_no))
    assert stored == replace(first, tried_us=77, result="answered 200")


def test_consumer_names_number_and_host() -> None:
    consumer = replace(READER, callback_no=17).consumer
    assert (consumer.name, consumer.kind) == ("hub:17@reader.example", "hub")
    assert (number_of(consumer), host_of(consumer)) == (17, "reader.example")


def test_secrets_are_not_in_the_text_of_a_callback() -> None:
    """[WS-076]"""
    assert "s3cret" not in repr(FULL) and "https://full.example/" not in repr(FULL)
