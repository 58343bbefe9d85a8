"""Reading and writing data forms (XEP-0004, XEP-0068, XEP-0122; xep-map 2.1, 67 to 70, 230 to 232)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lxml import etree

from smartfeeds.core.model import Node, NodeKind
from smartfeeds.core.options import (
    KIND,
    LISTS,
    OPTIONS,
    PUBSUB,
    FieldType,
    FormFields,
    NodeOptions,
    Option,
    OptionLimits,
)
from smartfeeds.core.suboptions import SUBSCRIBE_OPTIONS, SubscribeOption, values_of
from smartfeeds.core.text import attribute, escape
from smartfeeds.errors import Condition, FeedError
from smartfeeds.xmpp.namespaces import DATA, NODE_CONFIG, VALIDATE, tag

X = tag(DATA, "x")
_FIELD = tag(DATA, "field")
_VALUE = tag(DATA, "value")
FORM_TYPE = "FORM_TYPE"

Values = tuple[str, ...]


def parse_submit(parent: etree._Element, form_type: str, *, required: bool = True) -> FormFields | None:
    """Returns the fields of the form that was submitted in an element, or None if the form is cancelled.

    Fields without a name are ignored. If a field occurs twice, its values are joined, so that a field with one value is
    rejected later instead of choosing a value. A form without FORM_TYPE is accepted, a form with another one is not.
    Raises FeedError(BAD_REQUEST), also for a missing form unless `required` is false.
    """
    form = next(parent.iterchildren(X), None)
    if form is None:
        if required:
            raise FeedError(Condition.BAD_REQUEST, "the data form is missing")
        return None
    kind = form.get("type", "submit")
    if kind == "cancel":
        return None
    if kind != "submit":
        raise FeedError(Condition.BAD_REQUEST, f"the form has type {kind[:20]}; it must be submit or cancel")
    return read_fields(form, form_type)


def form_type_of(form: etree._Element) -> str:
    """Returns the FORM_TYPE of a form, empty if it has none."""
    types = (field for field in form.iterchildren(_FIELD) if field.get("var") == FORM_TYPE)
    return next((value.text or "" for field in types for value in field.iterchildren(_VALUE)), "")


def read_fields(form: etree._Element, form_type: str) -> FormFields:
    """Returns the fields of a form of any type, in the form of `parse_submit`. Raises FeedError(BAD_REQUEST)."""
    fields: dict[str, Values] = {}
    for field in form.iterchildren(_FIELD):
        var = field.get("var")
        if var:
            values = tuple((value.text or "") for value in field.iterchildren(_VALUE))
            fields[var] = fields.get(var, ()) + values
    form_types = fields.pop(FORM_TYPE, (form_type,))
    if set(form_types) != {form_type}:
        raise FeedError(Condition.BAD_REQUEST, f"the FORM_TYPE must be {form_type}")
    return fields


@dataclass(frozen=True, slots=True)
class FormField:
    """A field to write. `choices` are (value, label) pairs, `description` explains the field (XEP-0004 3.2).

    `datatype` is the XEP-0122 hint, `bounds` its smallest and greatest number. With `open`, values that are no choices
    are allowed too (XEP-0122 3.2.2).
    """

    var: str
    type: str
    values: Values
    label: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    datatype: str = ""
    required: bool = False
    open: bool = False
    description: str = ""
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FormTable:
    """A table of results (XEP-0004 3.4): (name, label) pairs of columns, and one text for each column in every row."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Values, ...]


def encode_form(
    kind: str,
    form_type: str,
    fields: Iterable[FormField],
    *,
    title: str = "",
    instructions: str = "",
    table: FormTable | None = None,
) -> str:
    """Returns a form of type `form` or `result` with a hidden FORM_TYPE. Raises ForbiddenCharacterError."""
    head = FormField(FORM_TYPE, "hidden", (form_type,))
    header = f"<title>{escape(title)}</title>" if title else ""
    header += f"<instructions>{escape(instructions)}</instructions>" if instructions else ""
    body = "".join(map(_encode_field, (head, *fields)))
    return f"<x xmlns='{DATA}' type='{kind}'>{header}{body}{_encode_table(table) if table else ''}</x>"


def _encode_table(table: FormTable) -> str:
    """Every item has all columns in their order, because Gajim reads the cells by their position."""
    columns = "".join(
        f"<field var='{attribute(var)}' type='text-single' label='{attribute(label)}'/>" for var, label in table.columns
    )
    rows = "".join(
        "<item>"
        + "".join(
            f"<field var='{attribute(var)}'><value>{escape(text)}</value></field>"
            for (var, _), text in zip(table.columns, row, strict=True)
        )
        + "</item>"
        for row in table.rows
    )
    return f"<reported>{columns}</reported>{rows}"


def _encode_field(field: FormField) -> str:
    var = f" var='{attribute(field.var)}'" if field.var else ""
    label = f" label='{attribute(field.label)}'" if field.label else ""
    required = "<required/>" if field.required else ""
    description = f"<desc>{escape(field.description)}</desc>" if field.description else ""
    hint = _encode_hint(field) if field.datatype else ""
    values = "".join(f"<value>{escape(value)}</value>" for value in field.values)
    choices = "".join(_encode_choice(value, text) for value, text in field.choices)
    return f"<field{var} type='{field.type}'{label}>{description}{hint}{required}{values}{choices}</field>"


def _encode_hint(field: FormField) -> str:
    rule = "<open/>" if field.open else ""
    if field.bounds is not None:
        least, most = field.bounds
        rule += f"<range min='{least}' max='{most}'/>"
    start = f"<validate xmlns='{VALIDATE}' datatype='{attribute(field.datatype)}'"
    return f"{start}>{rule}</validate>" if rule else f"{start}/>"


def _encode_choice(value: str, text: str) -> str:
    label = f" label='{attribute(text)}'" if text else ""
    return f"<option{label}><value>{escape(value)}</value></option>"


def option_field(option: Option[object], options: NodeOptions) -> FormField:
    """Returns a node option with its current value, without the hints for people who fill in a form."""
    values = options.values_of(option)
    if option.type in LISTS:
        values = tuple(value for value in values if value)
    return FormField(PUBSUB + option.var, option.type.value, values, option.label)


def configuration_form(node: Node, limits: OptionLimits) -> bytes:
    """The configuration of a node for its subscribers (XEP-0060 8.2.5)."""
    return encode_form("result", NODE_CONFIG, config_fields(node.options, limits, creating=False)).encode()


def config_fields(options: NodeOptions, limits: OptionLimits, *, creating: bool) -> list[FormField]:
    """Returns the configuration of a node, with the choices that the service accepts; with `creating` also its kind,
    which cannot change later.

    The default of the kind is the empty choice: the kind follows from the other fields (`core.kinds`). A client that
    returns the form with a lower `max_items` would otherwise ask for a feed that cannot be.
    """
    fields = [
        replace(
            option_field(option, options),
            choices=tuple((choice, "") for choice in option.choices(limits)),
            datatype=option.datatype,
        )
        for option in OPTIONS.values()
    ]
    if creating:
        kinds = (("", "decided by the other fields"), *((each.value, "") for each in NodeKind))
        fields.append(FormField(KIND, FieldType.LIST_SINGLE.value, ("",), "Kind of the node", kinds))
    return fields


def subscribe_fields(kind: NodeKind, options: Mapping[str, Values]) -> list[FormField]:
    """Returns the options of a subscription to a node of this kind (xep-map 125)."""
    return [_subscribe_field(option, options) for option in SUBSCRIBE_OPTIONS.values() if kind in option.kinds]


def _subscribe_field(option: SubscribeOption, options: Mapping[str, Values]) -> FormField:
    values, choices = values_of(options, option.var), tuple((choice, "") for choice in option.choices)
    return FormField(PUBSUB + option.var, option.type.value, values, option.label, choices)
