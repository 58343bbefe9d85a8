"""The stanzas of chat: messages to the bot and from it, and the stanzas of rooms.

Implements RFC 6121 section 5, XEP-0045 (rooms), XEP-0184 (receipts), XEP-0249 (invitations), XEP-0308 (corrections),
XEP-0380 (encryption), XEP-0439 (quick responses), XEP-0444 (reactions) and XEP-0461 (replies). `bot/` decides what the
stanzas mean.
"""

from dataclasses import dataclass
from typing import Literal

from smartfeeds.chat.commands import ChatReply
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.text import FORBIDDEN, attribute, cut, escape
from smartfeeds.service.requests import Request
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.parsing import COMPONENT_NS
from smartfeeds.xmpp.stanza_errors import error_condition
from smartfeeds.xmpp.stanza_side import ANY_TYPE, NO_OTHER, StanzaReaders

MessageKind = Literal["chat", "groupchat", "normal"]

_BODY = ns.tag(COMPONENT_NS, "body")
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_DELAY = ns.tag(ns.DELAY, "delay")
_REPLY = ns.tag(ns.REPLY, "reply")
_FALLBACK = ns.tag(ns.FALLBACK, "fallback")
_FALLBACK_BODY = ns.tag(ns.FALLBACK, "body")
_REPLACE = ns.tag(ns.CORRECTION, "replace")
_REACTIONS = ns.tag(ns.REACTIONS, "reactions")
_REACTION = ns.tag(ns.REACTIONS, "reaction")
_STANZA_ID = ns.tag(ns.STANZA_IDS, "stanza-id")
_RECEIPT_REQUEST = ns.tag(ns.RECEIPTS, "request")
_CONFERENCE_X = ns.tag(ns.CONFERENCE, "x")
_MUC_USER_X = ns.tag(ns.MUC_USER, "x")
_INVITE, _PASSWORD, _ITEM, _STATUS, _DESTROY = (
    ns.tag(ns.MUC_USER, name) for name in ("invite", "password", "item", "status", "destroy")
)
# The elements with an encrypted text, and the names of the encryptions for people.
_ENCRYPTED = {
    ns.tag(ns.OMEMO_LEGACY, "encrypted"): "OMEMO",
    ns.tag(ns.OMEMO_1, "encrypted"): "OMEMO",
    ns.tag(ns.OMEMO_2, "encrypted"): "OMEMO",
    ns.tag(ns.OPENPGP, "openpgp"): "OpenPGP",
    ns.tag(ns.OPENPGP_LEGACY, "x"): "OpenPGP",
}
_ENCRYPTION = ns.tag(ns.ENCRYPTION, "encryption")
_ENCRYPTIONS = {
    **{tag[1:].partition("}")[0]: name for tag, name in _ENCRYPTED.items()},
    ns.OTR: "OTR",
}
_OTR = "?OTR"  # begins every message of OTR
_ENCRYPTION_CHARACTERS = 40  # of a name that the sender has chosen
# What a message of type normal may have beside its text. A form, an event or an announcement of a service has more, and
# expects no answer in words.
_SIMPLE = frozenset(
    (
        *(ns.tag(COMPONENT_NS, name) for name in ("body", "subject", "thread")),
        *_ENCRYPTED,
        *(_ENCRYPTION, _FALLBACK, _REPLY, _REPLACE, _RECEIPT_REQUEST, _STANZA_ID),
        *(ns.tag(ns.CHAT_STATES, name) for name in ("active", "composing", "paused", "inactive", "gone")),
        *(ns.tag(ns.HINTS, name) for name in ("store", "no-store", "no-permanent-store", "no-copy")),
        *(ns.tag(ns.STANZA_IDS, "origin-id"), ns.tag(ns.MARKERS, "markable"), ns.tag(ns.NICK, "nick")),
        ns.tag(ns.XHTML_IM, "html"),
    )
)
_ID_CHARACTERS = 512  # a longer id is not repeated in a receipt
_REACTIONS_READ = 8  # of a message: people choose a few, and `posting.react` only searches them for a like
HISTORY = 50  # messages that a room repeats when the bot enters


@dataclass(frozen=True, slots=True)
class ChatMessage(Request):
    """A message to the bot, by its full sender `actor`; in a room the sender is the occupant.

    `text` is without the quotation of a reply. `reply_to`, `replaces` and `reacts_to` are ids of other messages, empty
    if there is none. `reactions` are those to the message `reacts_to`; none means that all were removed. `private` is
    set if the message came to one person through a room. In a room, replies and reactions refer to `stanza_id`, the id
    that the room gives a message (XEP-0359), and `history` is set if the message was sent before the bot entered.
    `encryption` names the encryption of a message that only its sender could read; it has no `text`.
    """

    kind: MessageKind
    message_id: str
    text: str = ""
    language: str = ""
    reply_to: str = ""
    replaces: str = ""
    reacts_to: str = ""
    reactions: tuple[str, ...] = ()
    wants_receipt: bool = False
    private: bool = False
    stanza_id: str = ""
    history: bool = False
    encryption: str = ""


@dataclass(frozen=True, slots=True)
class RoomInvitation(Request):
    """An invitation to a room. `from_room`: the room sent it, and names the inviter, an occupant who may invite."""

    room: Jid
    inviter: Jid
    password: bool
    from_room: bool


@dataclass(frozen=True, slots=True)
class RoomPresence(Request):
    """A presence from a room, whose occupant is `actor`.

    `kind` is the type: empty, `unavailable` or `error`; `condition` is that of an error. `statuses` are the codes of
    XEP-0045 section 15.6. `jid` is the real address of the occupant if the room shows it.
    """

    kind: str
    affiliation: str = ""
    jid: Jid | None = None
    statuses: frozenset[str] = frozenset()
    condition: str = ""
    destroyed: bool = False


@dataclass(frozen=True, slots=True)
class MessageError(Request):
    """An error response to a message of the bot, with its id and its condition."""

    message_id: str
    condition: str


def read_message(element: Element, sender: Jid, address: str) -> ChatMessage | None:
    """Returns a message of type chat, groupchat or normal.

    None for a message without content, and for one that waited while the service was away (XEP-0203).
    """
    kind = _kind_of(element)
    history = element.find(_DELAY) is not None
    if history and kind != "groupchat":
        return None
    reactions = element.find(_REACTIONS)
    encryption = _encryption_of(element)
    text = "" if reactions is not None or encryption else _text_of(element)
    if encryption and (kind == "groupchat" or not _has_encrypted_text(element)):
        return None
    if reactions is None and not encryption and not text.strip():
        return None
    return ChatMessage(
        sender,
        address,
        kind,
        element.get("id") or "",
        text,
        element.get(_LANG) or "",
        _id_of(element.find(_REPLY)),
        _id_of(element.find(_REPLACE)),
        _id_of(reactions),
        tuple((reaction.text or "").strip() for reaction in reactions.iterfind(_REACTION))[:_REACTIONS_READ]
        if reactions is not None
        else (),
        element.find(_RECEIPT_REQUEST) is not None,
        element.find(_MUC_USER_X) is not None,
        # Anybody may write an id in the name of others (XEP-0359 section 6).
        next((_id_of(child) for child in element.iterfind(_STANZA_ID) if child.get("by") == sender.bare_text), ""),
        history,
        encryption,
    )


def read_simple_message(element: Element, sender: Jid, address: str) -> ChatMessage | None:
    """Returns a message of type normal, which some clients send in place of type chat; None for one that is more than a
    text."""
    simple = all(child.tag in _SIMPLE for child in element)
    return read_message(element, sender, address) if simple else None


def _kind_of(element: Element) -> MessageKind:
    kind = element.get("type")
    return "chat" if kind == "chat" else "groupchat" if kind == "groupchat" else "normal"


def _encryption_of(element: Element) -> str:
    """Returns the name of the encryption of a message, an empty text if it is not encrypted.

    Clients add a text for readers that know no encryption, so a body says nothing (XEP-0380 section 3).
    """
    for child in element:
        if child.tag in _ENCRYPTED:
            return _ENCRYPTED[child.tag]
    mark = element.find(_ENCRYPTION)
    if mark is not None:
        name = _ENCRYPTIONS.get(mark.get("namespace") or "") or mark.get("name") or mark.get("namespace") or ""
        return cut(name, _ENCRYPTION_CHARACTERS) or "?"
    return "OTR" if (element.findtext(_BODY) or "").startswith(_OTR) else ""


def _has_encrypted_text(element: Element) -> bool:
    """Returns whether a person wrote an encrypted message. Clients send keys of OMEMO on their own, without a text."""
    omemo = [child for child in element if _ENCRYPTED.get(child.tag) == "OMEMO"]
    return not omemo or any(part.tag.endswith("}payload") for child in omemo for part in child)


def _id_of(element: Element | None) -> str:
    return "" if element is None else element.get("id") or ""


def _text_of(element: Element) -> str:
    """Returns the first body without the part that a client quotes for readers without XEP-0461 (XEP-0428)."""
    text = element.findtext(_BODY) or ""
    for fallback in element.iterfind(_FALLBACK):
        part = fallback.find(_FALLBACK_BODY)
        if fallback.get("for") != ns.REPLY or part is None:
            continue
        start, end = part.get("start", ""), part.get("end", "")
        # str.isdecimal also accepts digits of other scripts, and int reads them as well. The length is bounded, because
        # int rejects numbers of more than 4,300 digits.
        if start.isdecimal() and end.isdecimal() and len(start) < 10 and len(end) < 10:
            return text[: int(start)] + text[max(int(start), int(end)) :]
        return text if start or end else ""
    return text


def read_direct_invitation(element: Element, sender: Jid, address: str) -> RoomInvitation | None:
    """Returns an invitation that a user sent (XEP-0249)."""
    invitation = element.find(_CONFERENCE_X)
    room = parse_jid(invitation.get("jid") or "") if invitation is not None else None
    # A mediated invitation of an older service has this element too, and is read from the other one.
    if invitation is None or room is None or not room.local or element.find(_MUC_USER_X) is not None:
        return None
    return RoomInvitation(sender, address, room.bare, sender, bool(invitation.get("password")), from_room=False)


def read_mediated_invitation(element: Element, sender: Jid, address: str) -> RoomInvitation | None:
    """Returns an invitation that a room sent for a user (XEP-0045 section 7.8.2)."""
    details = element.find(_MUC_USER_X)
    invite = details.find(_INVITE) if details is not None else None
    inviter = parse_jid(invite.get("from") or "") if invite is not None else None
    if details is None or inviter is None or not sender.local or element.find(_DELAY) is not None:
        return None
    # A user at a client sends from a full address, a room from its bare one.
    if sender.resource:
        return None
    password = bool(details.findtext(_PASSWORD))
    return RoomInvitation(sender, address, sender.bare, inviter, password, from_room=True)


def read_room_presence(element: Element, sender: Jid, address: str) -> RoomPresence | None:
    """Returns a presence of an occupant, or the error response to a join (XEP-0045 section 7)."""
    kind = element.get("type") or ""
    if kind == "error":
        # A room answers as the occupant that the service wanted to be; contacts answer from their bare addresses.
        return RoomPresence(sender, address, kind, condition=error_condition(element)) if sender.resource else None
    details = element.find(_MUC_USER_X)
    if kind not in ("", "unavailable") or details is None:
        return None
    items = list(element.iterfind(f"{_MUC_USER_X}/{_ITEM}"))
    # A service that passes on the elements of an occupant shows two: its own one, and one that the occupant wrote.
    item = items[0] if len(items) == 1 else None
    jid = None if item is None else parse_jid(item.get("jid") or "")
    return RoomPresence(
        sender,
        address,
        kind,
        "" if item is None else item.get("affiliation") or "",
        jid if jid is not None and jid.local else None,
        frozenset(status.get("code") or "" for status in details.iterfind(_STATUS)),
        destroyed=details.find(_DESTROY) is not None,
    )


# The readers of messages by the type of the message and the tag of a child.
MESSAGES: StanzaReaders = {
    ("chat", _BODY): read_message,
    ("groupchat", _BODY): read_message,
    ("chat", _REACTIONS): read_message,
    ("groupchat", _REACTIONS): read_message,
    ("normal", NO_OTHER): read_simple_message,
    **{("chat", tag): read_message for tag in _ENCRYPTED},
    (ANY_TYPE, _CONFERENCE_X): read_direct_invitation,
    (ANY_TYPE, _MUC_USER_X): read_mediated_invitation,
}
# What the bot understands, for service discovery.
FEATURES = (
    ns.CONFERENCE,
    ns.CORRECTION,
    ns.QUICK_RESPONSE,
    ns.REACTIONS,
    ns.RECEIPTS,
    ns.REPLY,
)


@dataclass(frozen=True, slots=True)
class OutgoingChat:
    """A message of the bot. `responses` are values and labels of quick responses (XEP-0439). `answers` is the id of the
    message that it answers (XEP-0461); the first `quoted` characters of the text are for clients without that.
    """

    to: str
    text: str
    message_id: str
    kind: MessageKind = "chat"
    language: str = "en"
    responses: tuple[tuple[str, str], ...] = ()
    answers: str = ""
    quoted: int = 0


def responses_of(reply: ChatReply) -> tuple[tuple[str, str], ...]:
    """Returns the buttons of an answer, as values and labels."""
    return tuple((offer.command, offer.label or offer.command) for offer in reply.offers)


def encode_message(message: OutgoingChat, sender: str) -> bytes:
    """Returns a message from `sender`. Characters that XML forbids are replaced."""
    responses = "".join(
        f"<response xmlns='{ns.QUICK_RESPONSE}' value='{attribute(value)}' label='{attribute(label)}'/>"
        for value, label in message.responses
    )
    reply = _reply(message, sender) if message.answers else ""
    return (
        f"<message from='{attribute(sender)}' to='{attribute(message.to)}' type='{message.kind}'"
        f" id='{attribute(message.message_id)}' xml:lang='{attribute(message.language)}'>"
        f"<body>{escape(FORBIDDEN.sub(chr(0xFFFD), message.text))}</body>{reply}{responses}</message>"
    ).encode()


def _reply(message: OutgoingChat, sender: str) -> str:
    """The elements that name the answered message, which the sender has sent too, and its quotation in the body
    (XEP-0428)."""
    return (
        f"<reply xmlns='{ns.REPLY}' to='{attribute(sender)}' id='{attribute(message.answers)}'/>"
        f"<fallback xmlns='{ns.FALLBACK}' for='{ns.REPLY}'><body start='0' end='{message.quoted}'/></fallback>"
    )


def encode_receipt(message: ChatMessage) -> bytes:
    """Returns the receipt of a message (XEP-0184), or no bytes if its id is missing or too long."""
    if not 0 < len(message.message_id) <= _ID_CHARACTERS:
        return b""
    received = f"<received xmlns='{ns.RECEIPTS}' id='{attribute(message.message_id)}'/>"
    addresses = f"from='{attribute(message.service)}' to='{attribute(str(message.actor))}'"
    return f"<message {addresses} type='{message.kind}'>{received}</message>".encode()


def encode_contact_request(sender: str, user: str, name: str) -> bytes:
    """Returns a request to subscribe to the presence of a user, with the name of the sender (XEP-0172 section 4.1)."""
    nick = f"<nick xmlns='{ns.NICK}'>{escape(name)}</nick>"
    return f"<presence from='{attribute(sender)}' to='{attribute(user)}' type='subscribe'>{nick}</presence>".encode()


def encode_join(sender: str, room: str, nick: str, picture: str = "") -> bytes:
    """Returns the presence that enters a room (XEP-0045 section 7.2). `picture` is the element that announces the
    picture of the bot (`xmpp.avatar.presence_mark`).

    In the history the bot finds its own messages, to which people reply.
    """
    to = attribute(f"{room}/{nick}")
    history = f"<x xmlns='{ns.MUC}'><history maxstanzas='{HISTORY}'/></x>"
    return f"<presence from='{attribute(sender)}' to='{to}'>{history}{picture}</presence>".encode()


def encode_leave(sender: str, room: str, nick: str) -> bytes:
    """Returns the presence that leaves a room (XEP-0045 section 7.14)."""
    return f"<presence from='{attribute(sender)}' to='{attribute(f'{room}/{nick}')}' type='unavailable'/>".encode()


def encode_decline(sender: str, invitation: RoomInvitation, reason: str) -> bytes:
    """Returns the refusal of an invitation, which the room passes on to the inviter (XEP-0045 section 7.8.2)."""
    decline = f"<decline to='{attribute(str(invitation.inviter))}'><reason>{escape(reason)}</reason></decline>"
    addresses = f"from='{attribute(sender)}' to='{attribute(str(invitation.room))}'"
    return f"<message {addresses}><x xmlns='{ns.MUC_USER}'>{decline}</x></message>".encode()
