"""Sessions of browsers in every store."""

from dataclasses import replace

from smartfeeds.core.token import Token, TokenScope
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.bearer import digest_of
from smartfeeds.features.accounts.session import Session
from smartfeeds.store.base import Store, WriteTx

JID = "alice@example.org"
ONE = Session("0123456789ab", digest_of("s"), JID, TokenScope.PUBLISH, "ünï", "f" * 12, "Firefox é", 7, 8, 20, 30)


async def test_session_is_stored_and_replaced(store: Store) -> None:
    await store.write(lambda tx: account_rows.put_session(tx, ONE))
    assert await store.read(lambda tx: account_rows.session(tx, ONE.session_id)) == ONE
    later = replace(ONE, seen_us=9, expires_us=21)
    await store.write(lambda tx: account_rows.put_session(tx, later))
    assert await store.read(lambda tx: account_rows.session(tx, ONE.session_id)) == later
    assert await store.read(lambda tx: account_rows.session(tx, "")) is None


async def test_sessions_of_a_user_are_listed_by_their_last_use(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        for name, seen_us, jid in (("c", 1, "a@x"), ("b", 3, "a@x"), ("a", 3, "a@x"), ("d", 2, "b@x"), ("e", 2, "a@x")):
            account_rows.put_session(tx, replace(ONE, session_id=name * 12, seen_us=seen_us, jid=jid))
        account_rows.remove_session(tx, "e" * 12)

    await store.write(work)
    lists = await store.read(
        lambda tx: [
            account_rows.sessions_of(tx, "a@x"),
            account_rows.sessions_of(tx, "b@x"),
            account_rows.sessions_of(tx, "c@x"),
        ]
    )
    assert ["".join(one.session_id[0] for one in sessions) for sessions in lists] == ["cab", "d", ""]


async def test_ended_sessions_are_listed_by_their_end(store: Store) -> None:
    def work(tx: WriteTx) -> None:
        for name, expires_us in (("c", 5), ("b", 4), ("a", 6), ("d", 3)):
            account_rows.put_session(tx, replace(ONE, session_id=name * 12, expires_us=expires_us))

    await store.write(work)
    lists = await store.read(
        lambda tx: [
            account_rows.ended_sessions(tx, 5, 9),
            account_rows.ended_sessions(tx, 5, 2),
            account_rows.ended_sessions(tx, 2, 9),
        ]
    )
    assert ["".join(session_id[0] for session_id in ids) for ids in lists] == ["dbc", "db", ""]


async def test_sessions_of_a_removed_token_are_removed_with_it(store: Store) -> None:
    other, over_xmpp = replace(ONE, session_id="1" * 12, token_id="e" * 12), replace(ONE, session_id="2", token_id="")

    def work(tx: WriteTx) -> None:
        account_rows.add_token(tx, Token(ONE.token_id, digest_of("t"), JID, TokenScope.PUBLISH, "*", "", 1))
        for session in (ONE, other, over_xmpp):
            account_rows.put_session(tx, session)
        account_rows.remove_token(tx, ONE.token_id)

    await store.write(work)
    assert await store.read(lambda tx: account_rows.sessions_of(tx, JID)) == [other, over_xmpp]
