"""The command that signs a browser in to the web pages (`features.accounts.sign_ins`).

The command needs two messages. The first answer names the site and the network address that asks, so that nobody who
was tricked into sending a code signs a stranger's browser in. A link can contain both words, so "yes" in the first
message counts for nothing. A "yes" alone counts for nothing either: it compares no code.
"""

from smartfeeds.chat.commands import Chat, ChatCommand, ChatReply, ChatTable, Offer, RefusalError, UsageError
from smartfeeds.chat.grammar import arguments
from smartfeeds.features.accounts.sign_ins import SignIns
from smartfeeds.texts import N_, Texts

LOGIN = N_("login CODE")
YES = "yes"
_YES_WORDS = frozenset({YES, "ja"})
_UNKNOWN = N_("No sign-in waits for this code. Codes are valid for five minutes: get a new one on the sign-in page.")
# What people write who think that the question was one for "yes" or "no".
_ASSENTS = _YES_WORDS | {"y", "ok", "okay", "confirm", "accept", "bestätigen", "bestätige"}
HOW_TO_CONFIRM = N_("To confirm, write this with the code that your browser shows: {command}")
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


def confirming_command(texts: Texts) -> str:
    """Returns the command that confirms a sign-in, with a word in place of the code."""
    return f"{texts.say(LOGIN)} {YES}"


async def explain_assent(c: Chat, text: str) -> ChatReply | None:
    """Answers a "yes" to a question about a sign-in: it says what to write."""
    is_assent = not c.in_room and text.strip().rstrip(".!").casefold() in _ASSENTS
    if not is_assent or not c.part(SignIns).awaits(c.actor):
        return None
    how = c.say(HOW_TO_CONFIRM, command=confirming_command(c.texts))
    return ChatReply(f"{c.say('A sign-in to the web pages waits for you.')} {how}")


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
    answer_other=explain_assent,
)
