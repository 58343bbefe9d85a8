"""Fetched documents in every store: as they were put, each reader for itself."""

import pytest

from smartfeeds.core.validators import KnownDocument, Validators
from smartfeeds.store.base import Store, WriteTx

URL, OTHER_URL = "https://a.example/feed", "https://b.example/feed"
ONE = KnownDocument(Validators("https://a.example/moved", 'W/"1"', "yesterday"), b"\x00<feed/>")
TWO = KnownDocument(Validators(URL))


async def test_document_is_found_as_it_was_put(store: Store) -> None:
    """Two readers of one address have processed different versions of it."""

    def put(tx: WriteTx) -> None:
        tx.put_document("nno planet", URL, ONE)
        tx.put_document("nno planet", OTHER_URL, TWO)
        tx.put_document("mirror plans", URL, TWO)

    await store.write(put)

    assert await store.read(lambda tx: tx.documents("nno planet")) == {URL: ONE, OTHER_URL: TWO}
    assert await store.read(lambda tx: tx.documents("mirror plans")) == {URL: TWO}
    assert await store.read(lambda tx: tx.documents("nno")) == {}
    assert await store.read(lambda tx: tx.document_readers()) == {"nno planet", "mirror plans"}


async def test_document_is_replaced_and_removed(store: Store) -> None:
    await store.write(lambda tx: tx.put_document("nno planet", URL, ONE))
    await store.write(lambda tx: tx.put_document("nno planet", URL, TWO))
    await store.write(lambda tx: tx.put_document("mirror plans", URL, ONE))
    assert await store.read(lambda tx: tx.documents("nno planet")) == {URL: TWO}

    await store.write(lambda tx: tx.remove_document("nno planet", URL))
    await store.write(lambda tx: tx.remove_document("nno planet", URL))
    assert await store.read(lambda tx: tx.documents("nno planet")) == {}
    assert await store.read(lambda tx: tx.documents("mirror plans")) == {URL: ONE}


async def test_work_that_raises_leaves_documents_as_they_were(store: Store) -> None:
    await store.write(lambda tx: tx.put_document("nno planet", URL, ONE))

    def fail(tx: WriteTx) -> None:
        tx.put_document("nno planet", URL, TWO)
        tx.put_document("nno planet", OTHER_URL, TWO)
        raise ValueError

    with pytest.raises(ValueError):
        await store.write(fail)
    assert await store.read(lambda tx: tx.documents("nno planet")) == {URL: ONE}
