"""Values as people read them, in the language of a page: times, numbers, sizes and endpoints.

The catalogues have the forms (`{day} {month} {year}`) as texts, so a new language needs no code.
"""

from datetime import timedelta
from urllib.parse import unquote

from smartfeeds.core.times import EPOCH
from smartfeeds.texts import N_, Texts

_MONTHS = (
    *(N_("Jan"), N_("Feb"), N_("Mar"), N_("Apr"), N_("May"), N_("Jun")),
    *(N_("Jul"), N_("Aug"), N_("Sep"), N_("Oct"), N_("Nov"), N_("Dec")),
)
_UNITS = ("B", "kB", "MB", "GB", "TB")


class Wording:
    """Writes values with the texts of one language."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def time(self, time_us: int) -> str:
        """A time in UTC, for readers whose browser does not run the script that shows local times."""
        moment = EPOCH + timedelta(microseconds=time_us)
        return self._texts.say(
            N_("{day} {month} {year}, {time} UTC"),
            day=moment.day,
            month=self._texts.say(_MONTHS[moment.month - 1]),
            year=moment.year,
            time=f"{moment:%H:%M}",
        )

    def number(self, number: float) -> str:
        """A number with spaces between thousands. A fraction has one digit."""
        whole, _, tenths = (f"{number:,}" if isinstance(number, int) else f"{number:,.1f}").partition(".")
        whole = whole.replace(",", "\N{NARROW NO-BREAK SPACE}")
        return self._texts.say(N_("{whole}.{tenths}"), whole=whole, tenths=tenths) if tenths else whole

    def size(self, size_bytes: int) -> str:
        """A size in the unit that makes its number small."""
        amount, exponent = float(size_bytes), 0
        while amount >= 1_000 and exponent < len(_UNITS) - 1:
            amount, exponent = amount / 1_000, exponent + 1
        return f"{self.number(amount if exponent and amount < 10 else round(amount))} {_UNITS[exponent]}"

    def person(self, by: str) -> str:
        """An endpoint: the user and the service, or the text itself if it has another form (A-51)."""
        text = unquote(by, errors="replace")
        if not text.isprintable() or "\N{REPLACEMENT CHARACTER}" in text:
            return by
        service, _, name = text.partition("/")
        if service and name:
            return self._texts.say(N_("{name} at {service}"), name=name, service=service)
        return text or self._texts.say(N_("somebody"))
