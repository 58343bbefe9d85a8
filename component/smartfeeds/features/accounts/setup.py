"""Sign-ins through XMPP that every process of the domain knows (docs/scaling.md).

The browser, the request to confirm (XEP-0070) and its answer may each be at another process. Letters carry each change
of a sign-in to all processes, so that any of them can serve the next step.
"""

import json
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.features.accounts.http_auth import CONFIRM, SignInAnswer, encode_confirm, read_confirmation
from smartfeeds.features.accounts.sessions import SWEEP
from smartfeeds.features.accounts.sign_in_letters import CONFIRMATION, SIGN_INS, read_sign_ins, write_sign_ins
from smartfeeds.features.accounts.sign_ins import SignIn, SignIns
from smartfeeds.features.accounts.tokens import BearerTokens
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.stanza_side import ANY_TYPE, StanzaSide


def run_accounts(host: Host) -> Running:
    """Returns what runs: the sign-ins, and what reads tokens. One process at a time removes ended sessions."""
    sign_ins = SharedSignIns(host)
    return Running(
        parts=(sign_ins, sign_ins.sign_ins, BearerTokens(host.service)),
        duties=((SWEEP.name, partial(SWEEP.run, host.service)),),
        stanzas=sign_ins.stanzas,
    )


class SharedSignIns:
    """The sign-ins of all processes.

    `requests`: the service sends requests to confirm (XEP-0070). It does not without `http.base_url`: anybody can make
    it send this text to a stranger, so its address must not come from the header Host.
    """

    def __init__(self, host: Host) -> None:
        self.requests = bool(host.settings.http.base_url)
        self.sign_ins = SignIns(host.now_us, on_change=self._share)
        self._host = host
        self._letters = host.letters
        self._letters.read(SIGN_INS, self._receive)
        self._letters.read(CONFIRMATION, self._receive_confirmation)
        self._letters.greet(lambda: self._share(*self.sign_ins))

    @property
    def chat(self) -> bool:
        """Whether a code can be sent to the service in a chat."""
        return self._host.answers_chat()

    @property
    def stanzas(self) -> StanzaSide:
        """Reads the answers of users. They have no response (XEP-0070 section 4.6)."""
        return StanzaSide(personal_messages={(kind, CONFIRM): self._read for kind in (ANY_TYPE, "error")})

    def _read(self, message: Element, user: Jid, _address: str) -> None:
        confirmation = read_confirmation(message)
        if confirmation is not None:
            self.confirm(user, confirmation)

    def ask(self, sign_in: SignIn, url: str, text: str) -> None:
        """Asks the user of a sign-in to confirm it (XEP-0070)."""
        self._host.send(
            encode_confirm(self._host.settings.component.jid, str(sign_in.target), sign_in.shown_code, url, text)
        )

    def confirm(self, user: Jid, confirmation: SignInAnswer) -> None:
        """Notes the answer of a user. If this process does not know the sign-in, another one may: its letter and the
        answer may cross."""
        sign_ins = self.sign_ins
        is_known = sign_ins.answer(confirmation.code, user, accepted=confirmation.accepted) is not None
        if not is_known and sign_ins.admits(user):
            body = json.dumps([confirmation.code, str(user), confirmation.accepted])
            self._letters.share(CONFIRMATION, body.encode())

    def _share(self, *sign_ins: SignIn) -> None:
        if sign_ins:
            self._letters.share(SIGN_INS, write_sign_ins(sign_ins, self._host.now_us()))

    def _receive(self, body: bytes) -> None:
        for sign_in in read_sign_ins(body, self._host.now_us()):
            self.sign_ins.receive(sign_in)

    def _receive_confirmation(self, body: bytes) -> None:
        code, text, accepted = json.loads(body)
        user = parse_jid(text)
        if user is not None:
            self.sign_ins.answer(code, user, accepted=accepted)
