"""The fields of ad-hoc commands: one value for each, which writes the field of a form and reads the submitted value.

Every value that a user submits is read by one of these fields, so it has the right type and a bounded length
(XEP-0004 section 3.3, XEP-0122). `CommandField.read` raises CommandError(BAD_PAYLOAD) for any other value.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.options import BOOLEANS
from smartfeeds.xmpp.commands import CommandForm, Step, StepInput
from smartfeeds.xmpp.forms import FormField, Values
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

T = TypeVar("T")
JIDS = 100  # addresses in one field


@dataclass(frozen=True, slots=True)
class CommandField(Generic[T]):
    """A field. `parse` returns the value of submitted texts, or raises ValueError with what the field must have.

    `default` are the texts of a field that is not submitted. A required field has none.
    """

    var: str
    label: str
    type: str
    parse: Callable[[Values], T]
    default: Values = ()
    choices: tuple[tuple[str, str], ...] = ()
    datatype: str = ""
    required: bool = False
    description: str = ""
    bounds: tuple[int, int] | None = None

    def show(self, *texts: str) -> FormField:
        """Returns the field with these texts, by default its default."""
        values = texts or self.default
        return FormField(
            self.var,
            self.type,
            values,
            self.label,
            self.choices,
            self.datatype,
            self.required,
            description=self.description,
            bounds=self.bounds,
        )

    def again(self, step: StepInput) -> FormField:
        """Returns the field with the texts that were submitted before the user went back."""
        return self.show(*step.values.get(self.var, ()))

    def offer(self, step: StepInput, choices: tuple[tuple[str, str], ...], *, complete: bool) -> FormField:
        """Returns the field as a list of choices, or as a text to write if the choices are not complete."""
        field = self.again(step)
        if not (choices and complete):
            return field
        return replace(field, type="list-single", values=field.values or choices[0][:1], choices=choices)

    def hide(self, *texts: str) -> FormField:
        """Returns a hidden field that carries the texts to later steps."""
        return FormField(self.var, "hidden", texts)

    def read(self, step: StepInput) -> T:
        """Returns the submitted value. Raises CommandError(BAD_PAYLOAD)."""
        try:
            return self.parse(step.values.get(self.var, ()) or self.default)
        except ValueError as error:
            raise CommandError(CommandFault.BAD_PAYLOAD, f"the field {self.var} must have {error}") from None


def form_step(*fields: CommandField[Any], instructions: str = "") -> Step:
    """Returns a step that shows fields. The values that were submitted before come back."""

    async def show(step: StepInput) -> CommandForm:
        return CommandForm(tuple(field.again(step) for field in fields), instructions=instructions)

    return show


def text_field(
    var: str, label: str, max_bytes: int, *, required: bool = True, any_character: bool = False, description: str = ""
) -> CommandField[str]:
    """A text. An optional field may be empty. `any_character` allows control characters, as in names of nodes."""
    least = 1 if required else 0

    def parse(values: Values) -> str:
        text = _single(values)
        if not (least <= len(text.encode()) <= max_bytes and (any_character or text.isprintable())):
            raise ValueError(f"one value of {least} to {max_bytes} bytes without control characters")
        return text

    return CommandField(
        var, label, "text-single", parse, datatype="xs:string", required=required, description=description
    )


def lines_field(var: str, label: str, max_bytes: int, *, required: bool = True) -> CommandField[str]:
    """Lines of text, joined by line ends."""
    least = 1 if required else 0

    def parse(values: Values) -> str:
        text = "\n".join(values).strip()
        if not least <= len(text.encode()) <= max_bytes:
            raise ValueError(f"text of {least} to {max_bytes} bytes")
        return text

    return CommandField(var, label, "text-multi", parse, datatype="xs:string", required=required)


def choice_field(var: str, label: str, choices: Mapping[str, str]) -> CommandField[str]:
    """One of the choices, a label for each value. The first is the default.

    A list without a default would be a trap in Gajim: its window shows the first choice, but sends no value until the
    user selects another one.
    """

    def parse(values: Values) -> str:
        text = _single(values)
        if text not in choices:
            raise ValueError(f"one of the values {', '.join(choices)}")
        return text

    return CommandField(var, label, "list-single", parse, tuple(choices)[:1], tuple(choices.items()), "xs:string")


def flag_field(var: str, label: str, *, default: bool = False, description: str = "") -> CommandField[bool]:
    """Yes or no."""

    def parse(values: Values) -> bool:
        text = BOOLEANS.get(_single(values))
        if text is None:
            raise ValueError("the value true or false")
        return text == "true"

    defaults = ("true" if default else "false",)
    return CommandField(var, label, "boolean", parse, defaults, datatype="xs:boolean", description=description)


def number_field(var: str, label: str, least: int, most: int, *, default: int) -> CommandField[int]:
    """A whole number within bounds."""

    def parse(values: Values) -> int:
        text = _single(values)
        if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return CommandField(
        var, label, "text-single", parse, (str(default),), datatype="xs:integer", required=True, bounds=(least, most)
    )


def jid_field(var: str, label: str, *, required: bool = True, description: str = "") -> CommandField[str]:
    """A bare JID in its normal form. An optional field may be empty."""

    def parse(values: Values) -> str:
        text = _single(values)
        jid = parse_jid(text)
        if not text and not required:
            return ""
        if jid is None or jid.resource:
            raise ValueError("a bare JID such as alice@example.org")
        return str(jid)

    return CommandField(var, label, "jid-single", parse, required=required, description=description)


def jids_field(var: str, label: str) -> CommandField[tuple[str, ...]]:
    """JIDs in their normal form, each once.

    Cheogram, the variant of Conversations with a window for commands, sends all lines of the field in one value.
    """

    def parse(values: Values) -> tuple[str, ...]:
        lines = [line.strip() for value in values for line in value.splitlines()]
        jids = [parse_jid(line) for line in lines if line]
        if not 0 < len(jids) <= JIDS or None in jids:
            raise ValueError(f"1 to {JIDS} JIDs such as alice@example.org")
        return tuple(dict.fromkeys(map(str, jids)))

    return CommandField(var, label, "jid-multi", parse, required=True)


def _single(values: Values) -> str:
    """Returns the only text, or an empty text if there is none. Raises ValueError for several."""
    if len(values) > 1:
        raise ValueError("one value")
    return values[0] if values else ""
