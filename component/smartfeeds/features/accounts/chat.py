"""The command that signs a browser in to the web pages (`features.accounts.sign_ins`).

The command needs two messages. The first answer names the site and the network address that asks, so that nobody who
was tricked into sending a code signs a stranger's browser in. A link can contain both words, so "yes" in the first
message counts for nothing.
"""

from smartfeeds.chat.commands import Chat, ChatCommand, ChatReply, ChatTable, Offer, RefusalError, UsageError
from smartfeeds.chat.grammar import arguments
from smartfeeds.features.accounts.sign_ins import SignIns
from smartfeeds.texts import N_

LOGIN = N_("login CODE")
YES = "yes"
_YES_WORDS = frozenset({YES, "ja"})
_UNKNOWN = N_("No sign-in waits for this code. Codes are valid for five minutes: get a new one on the sign-in page.")
_IN_PRIVATE = N_("Write to me directly to sign in: {address}")


async def login(c: Chat, rest: str) -> ChatReply:
    """Shows who asks, and confirms the sign-in when the user says yes."""
    if c.in_room:
        raise RefusalError(c.say(_IN_PRIVATE, address=c.service))
    words = arguments(rest)
    if not 1 <= len(words) <= 2 or (len(words) == 2 and words[1].casefold() not in _YES_WORDS):
        raise UsageError
    sign_ins = c.part(SignIns)
    sign_in = sign_ins.find(words[0], c.actor)
    if sign_in is None:
        raise RefusalError(c.say(_UNKNOWN))
    if len(words) == 1 or sign_in.informed != c.actor.bare:
        sign_ins.inform(sign_in, c.actor)
        command = c.command(LOGIN, sign_in.shown_code, YES)
        text = c.say(
            "A browser at {address} asks to sign in to {site} as {jid}. If this is your browser, write: {command}\n"
            "If not, ignore this message: nobody is signed in then.",
            address=sign_in.address,
            site=sign_in.site,
            jid=c.jid,
            command=command,
        )
        return ChatReply(text, (Offer(command, c.say("Sign in")),))
    sign_ins.answer(words[0], c.actor, accepted=True)
    return ChatReply(c.say("The browser is signed in as {jid}. Its page continues by itself.", jid=c.jid))


CHAT = ChatTable(
    (
        ChatCommand(
            "login",
            LOGIN,
            N_("signs you in to the web pages, which show the code"),
            login,
            {"de": ("anmelden",)},
        ),
    ),
    before="join",
)
