"""An ad-hoc command as a client runs it: every form goes back with all its fields, as Gajim sends it."""

from xml.sax.saxutils import quoteattr

from lxml import etree

from support.component import DOMAIN, NS, Component, Element, fields, ok, submit, text_of

CMD = "http://jabber.org/protocol/commands"
URN = "urn:smartfeeds:0"
ADMIN = "http://jabber.org/protocol/admin"
CNS = {**NS, "cmd": CMD}


class Dialog:
    """One run of a command by one user. `answer` is the newest response that was no error."""

    def __init__(self, component: Component, user: str, node: str) -> None:
        self._component, self._user = component, user
        self.node = node if ":" in node else f"{URN}#{node}"
        self.session = ""
        self.answer: Element | None = None

    async def begin(self) -> Element:
        """The first response."""
        return await self.send("")

    async def go(self, action: str = "", **values: str | list[str]) -> Element:
        """Fills in the newest form and sends it. A name may have `_` where the field has `-`."""
        assert self.answer is not None
        filled = fields(self.answer)
        filled.pop("None", None)  # texts for reading have no name
        changes = {var: [value] if isinstance(value, str) else value for var, value in values.items()}
        return await self.send(submit({self.full(var): texts for var, texts in (filled | changes).items()}), action)

    async def send(self, form: str, action: str = "") -> Element:
        """Sends a form as it is."""
        attributes = (("node", self.node), ("sessionid", self.session), ("action", action))
        names = "".join(f" {name}={quoteattr(text)}" for name, text in attributes if text)
        answer = await self._component.ask(self._user, "set", f"<command xmlns='{CMD}'{names}>{form}</command>", DOMAIN)
        if answer.get("type") == "result":
            self.answer = answer
            self.session = answer[0].get("sessionid", "")
        return answer

    def full(self, var: str) -> str:
        """The name of a field of the newest form; names of the configuration lost their prefix in `fields`."""
        assert self.answer is not None
        known = {str(each.get("var")) for each in self.answer.iterfind(".//x:field", NS)}
        return f"pubsub#{var}" if f"pubsub#{var}" in known else var


def status(answer: Element) -> str | None:
    """The status of a command."""
    return ok(answer)[0].get("status")


def notes(answer: Element) -> list[str | None]:
    """The notes of a completed command."""
    assert status(answer) == "completed", text_of(answer)
    return [note.text for note in answer[0].iterfind("cmd:note", CNS)]


def actions(answer: Element) -> tuple[str | None, list[str]]:
    """The default action of a form, and its actions."""
    (element,) = ok(answer)[0].iterfind("cmd:actions", CNS)
    return element.get("execute"), [etree.QName(action).localname for action in element]


def condition(answer: Element) -> str:
    """The defined condition of an error, with the condition of XEP-0050 behind a slash."""
    assert answer.get("type") == "error", text_of(answer)
    names = [etree.QName(child) for child in answer[-1]]
    faults = [name.localname for name in names if name.namespace == CMD]
    return "/".join((names[0].localname, *faults))


def table(answer: Element) -> list[dict[str, str]]:
    """The rows of a completed table. Every row has the columns of the head, in their order, as Gajim needs it."""
    assert status(answer) == "completed", text_of(answer)
    (form,) = answer.iterfind(".//x:x", NS)
    assert form.findtext("x:title", namespaces=NS), "Gajim fails for a table without a title"
    head = [str(each.get("var")) for each in form.iterfind("x:reported/x:field", NS)]
    rows = []
    for item in form.iterfind("x:item", NS):
        assert [each.get("var") for each in item] == head
        assert all(len(each) == 1 for each in item)
        rows.append({str(each.get("var")): each.findtext("x:value", "", NS) for each in item})
    return rows


def lines(answer: Element) -> list[str]:
    """The first line of each text for reading in a form, which has no table: Gajim could not send it back."""
    assert answer.find(".//x:reported", NS) is None
    texts = (each.findtext("x:value", "", NS) for each in ok(answer).iterfind(".//x:field[@type='fixed']", NS))
    return [text.partition("\n")[0] for text in texts]


async def listed(component: Component, user: str) -> list[str]:
    """The commands that disco#items shows to a user, without the URI of the project."""
    items = "http://jabber.org/protocol/disco#items"
    answer = ok(await component.ask(user, "get", f"<query xmlns='{items}' node='{CMD}'/>"))
    return [str(item.get("node")).removeprefix(f"{URN}#") for item in answer[0]]
