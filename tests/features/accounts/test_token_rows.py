"""Bearer tokens in every store."""

from dataclasses import replace

import pytest

from smartfeeds.core.token import Token, TokenScope
from smartfeeds.errors import StoreError
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.bearer import digest_of
from smartfeeds.store.base import Store, WriteTx
from smartfeeds.store.sqlite import SqliteStore
from support.query_plans import plan

ONE = Token("0123456789ab", digest_of("s"), "alice@example.org", TokenScope.PUBLISH, "ünï", "bot é", 7, 9)


async def test_add_token_is_found_as_it_was(store: Store) -> None:
    for_ever = replace(ONE, token_id="0" * 12, scope=TokenScope.ADMIN, feed="*", label="", expires_us=None)

    def work(tx: WriteTx) -> None:
        account_rows.add_token(tx, ONE)
        account_rows.add_token(tx, for_ever)

    await store.write(work)
    assert await store.read(lambda tx: tx.token(ONE.token_id)) == ONE
    assert await store.read(lambda tx: tx.token(for_ever.token_id)) == for_ever
    assert await store.read(lambda tx: tx.token("")) is None


async def test_add_token_of_an_id_that_is_taken_is_refused(store: Store) -> None:
    await store.write(lambda tx: account_rows.add_token(tx, ONE))
    with pytest.raises(StoreError):
        await store.write(lambda tx: account_rows.add_token(tx, replace(ONE, jid="eve@example.org")))

    assert await store.read(lambda tx: tx.token(ONE.token_id)) == ONE


async def test_tokens_are_paged_by_id(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        for name in "cabd":
            account_rows.add_token(tx, replace(ONE, token_id=name * 12))

    await store.write(work)
    found = await store.read(
        lambda tx: [
            account_rows.tokens(tx, "", 3),
            account_rows.tokens(tx, "b" * 12, 3),
            account_rows.tokens(tx, "d" * 12, 3),
        ]
    )
    assert ["".join(one.token_id[0] for one in page) for page in found] == ["abc", "cd", ""]


async def test_tokens_of_a_user_are_listed_by_age(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        for name, created_us, jid in (
            ("c", 1, "a@x"),
            ("b", 3, "a@x"),
            ("a", 3, "a@x"),
            ("d", 2, "b@x"),
            ("e", 2, "a@x"),
        ):
            account_rows.add_token(tx, replace(ONE, token_id=name * 12, created_us=created_us, jid=jid))
        account_rows.remove_token(tx, "e" * 12)

    await store.write(work)
    lists = await store.read(
        lambda tx: [
            account_rows.tokens_of(tx, "a@x"),
            account_rows.tokens_of(tx, "b@x"),
            account_rows.tokens_of(tx, "c@x"),
        ]
    )
    assert ["".join(token.token_id[0] for token in tokens) for tokens in lists] == ["cab", "d", ""]


async def test_remove_token_forgets_it_alone(store: Store) -> None:
    other = replace(ONE, token_id="f" * 12)

    def work(tx: WriteTx) -> None:
        account_rows.add_token(tx, ONE)
        account_rows.add_token(tx, other)
        account_rows.remove_token(tx, ONE.token_id)
        account_rows.remove_token(tx, "e" * 12)

    await store.write(work)
    assert await store.read(lambda tx: account_rows.tokens(tx, "", 9)) == [other]


async def test_work_that_raises_leaves_tokens_as_they_were(store: Store) -> None:
    await store.write(lambda tx: account_rows.add_token(tx, ONE))

    def work(tx: WriteTx) -> None:
        account_rows.remove_token(tx, ONE.token_id)
        account_rows.add_token(tx, replace(ONE, token_id="f" * 12))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.write(work)
    assert await store.read(lambda tx: account_rows.tokens(tx, "", 9)) == [ONE]


async def test_tokens_of_a_user_are_read_by_the_index(sqlite: SqliteStore) -> None:
    steps = await plan(sqlite, lambda tx: account_rows.tokens_of(tx, "a@x"))

    assert "SEARCH token USING INDEX token_jid (jid=?)" in steps
    assert "B-TREE" not in steps
