"""A client that knows nothing of a command but its forms, as the window of Gajim: it fills in what is required, and
presses the default action until the command ends (XEP-0050, XEP-0004, XEP-0122)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from lxml import etree

from support.component import DATA, ITEMS, STANZAS, Element, submit, text_of

CMD = "http://jabber.org/protocol/commands"
VALIDATE = "http://jabber.org/protocol/xdata-validate"
STAGES = 8  # no command has more
# What a person writes into required fields that have no value.
WRITTEN = {
    "accountjid": "bob@example.org",
    "accountjids": "gone@example.org",
    "address": "xmpp:feeds.b.example?;node=plans",
    "announcement": "Tea is ready",
    "confirm": "gone@example.org",
    "feed": "tea",
    "jid": "gone@example.org",
    "jids": "bob@example.org",
    "node": "tea",
    "pubsub#node": "tea",
    "url": "https://blog.example/feed.xml",
}
_TYPES = {"fixed", "boolean", "text-single", "text-multi", "list-single", "jid-single", "jid-multi"}
# The types whose values need a datatype; the other types are datatypes themselves.
_VALIDATED = {"boolean", "text-single", "text-multi", "list-single"}
_CONFIGURATION = ("pubsub#", "{urn:smartfeeds:0}kind")
_X = f"{{{DATA}}}"
_C = f"{{{CMD}}}"

Send = Callable[[str, str], Awaitable[Element]]


@dataclass(frozen=True, slots=True)
class FormClient:
    """A client. `send` sends an IQ with this type and payload, and returns the response.

    With `named` the client sends the name of the default action, as Gajim does, else `execute`, as Psi does.
    """

    send: Send
    named: bool = True

    async def commands(self) -> list[str]:
        """The nodes of the commands that the service shows."""
        answer = await self.send("get", f"<query xmlns='{ITEMS}' node='{CMD}'/>")
        return [str(item.get("node")) for item in answer[0]]

    async def walk(self, node: str) -> str:
        """Runs a command to its end. Returns "completed", or the condition of the error."""
        session, action, form = "", "execute", ""
        for _ in range(STAGES):
            names = {"node": node, "sessionid": session, "action": action}
            attributes = "".join(f" {name}={quoteattr(value)}" for name, value in names.items() if value)
            answer = await self.send("set", f"<command xmlns='{CMD}'{attributes}>{form}</command>")
            if answer.get("type") == "error":
                return next(child.tag for child in answer[-1]).removeprefix(f"{{{STANZAS}}}")
            stage = answer[0]
            session = session or stage.get("sessionid", "")
            assert (stage.get("node"), stage.get("sessionid")) == (node, session), text_of(answer)
            if stage.get("status") == "completed":
                _check_end(stage)
                return "completed"
            assert stage.get("status") == "executing", text_of(answer)
            action, form = _press(stage) if self.named else "execute", _fill(stage)
        raise AssertionError(f"{node} does not end")


def _press(stage: Element) -> str:
    """The default action, which must be one of the allowed actions."""
    (actions,) = stage.iterfind(f"{_C}actions")
    default = actions.get("execute", "")
    assert default in [etree.QName(action).localname for action in actions], text_of(stage)
    return default


def _fill(stage: Element) -> str:
    """The form of a stage with a value in every required field."""
    (form,) = stage.iterfind(f"{_X}x")
    assert form.get("type") == "form" and form.findtext(f"{_X}title"), text_of(stage)
    values: dict[str, list[str]] = {}
    for field in form.iterfind(f"{_X}field"):
        var, kind = field.get("var"), field.get("type", "")
        texts = [value.text or "" for value in field.iterfind(f"{_X}value")]
        if kind == "fixed":
            continue
        assert var and (kind == "hidden" or kind in _TYPES), text_of(field)
        if kind != "hidden":
            _check_input(field, kind)
        if not any(texts) and field.find(f"{_X}required") is not None:
            options = [option.findtext(f"{_X}value") or "" for option in field.iterfind(f"{_X}option")]
            texts = options[:1] or [WRITTEN[var]]
        values[var] = texts
    return submit(values)


def _check_input(field: Element, kind: str) -> None:
    assert field.get("label"), text_of(field)
    # Texts of the configuration form have no datatype, which means xs:string (XEP-0122 3.1).
    if kind in _VALIDATED and not field.get("var", "").startswith(_CONFIGURATION):
        validate = field.find(f"{{{VALIDATE}}}validate")
        assert validate is not None and validate.get("datatype"), text_of(field)


def _check_end(stage: Element) -> None:
    """A completed command has a result, notes of known types, or both."""
    notes = [note.get("type") for note in stage.iterfind(f"{_C}note")]
    forms = [form.get("type") for form in stage.iterfind(f"{_X}x")]
    assert set(notes) <= {"info", "warn", "error"} and set(forms) <= {"result"}, text_of(stage)
    assert (notes or forms) and stage.find(f"{_C}actions") is None, text_of(stage)
    for form in stage.iterfind(f"{_X}x"):
        columns = [column.get("var") for column in form.iterfind(f"{_X}reported/{_X}field")]
        rows = [[field.get("var") for field in row] for row in form.iterfind(f"{_X}item")]
        assert all(row == columns for row in rows), text_of(form)
