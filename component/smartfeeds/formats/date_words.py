"""Words in dates: names of months in large languages, names of time zones, and words without a meaning of their own.

Words are compared without case and accents. A shorter form of a month counts if it means one month only.
"""

import unicodedata
from datetime import timedelta
from typing import Final

# In the order of precedence: a short form of a later language does not take that of an earlier one.
_LANGUAGES: Final = (
    # English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Polish, Turkish
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jänner feber maerz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    # Swedish, Danish, Norwegian, Czech, Ukrainian, Greek, Romanian, Hungarian, Indonesian, Finnish
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar marts april maj juni juli august september oktober november desember",
    "ledna února března dubna května června července srpna září října listopadu prosince",
    "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    "ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου νοεμβρίου "
    "δεκεμβρίου",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "január február március április május június július augusztus szeptember október november december",
    "januari februari maret april mei juni juli agustus september oktober november desember",
    "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta lokakuuta "
    "marraskuuta joulukuuta",
)
_SHORT: Final = {"mrz": 3, "mrt": 3, "mär": 3, "sept": 9, "set": 9, "setiembre": 9, "янв": 1, "märc": 3, "jui": 6}
_SHORTEST: Final = 3

# Minutes from UTC: RFC 822 with its letters, and names seen in feeds that mean one offset. IST is none of them: it is
# the time of India, Ireland and Israel.
_OFFSETS_MIN: Final = {
    0: "gmt ut utc z wet",
    60: "bst west cet met mez wat",
    120: "cest cedt mest mesz eet sast cat",
    180: "eest msk eat trt idt",
    240: "msd",
    300: "pkt",
    345: "npt",
    420: "ict wib",
    480: "awst hkt sgt",
    540: "jst kst",
    570: "acst",
    600: "aest",
    630: "acdt",
    660: "aedt",
    720: "nzst",
    780: "nzdt",
    -150: "ndt",
    -180: "adt brt art",
    -210: "nst",
    -240: "edt ast",
    -300: "est cdt",
    -360: "cst mdt",
    -420: "mst pdt",
    -480: "pst akdt",
    -540: "akst",
    -600: "hst",
}
ZONES: Final = {
    **{name: timedelta(minutes=minutes) for minutes, names in _OFFSETS_MIN.items() for name in names.split()},
    **{letter: timedelta(hours=-hours) for hours, letter in enumerate("abcdefghiklm", start=1)},
    **{letter: timedelta(hours=hours) for hours, letter in enumerate("nopqrstuvwxy", start=1)},
}

# Words around dates and times, as in "5 de marzo de 2024 a las 10:15" and "5 марта 2024 г. в 10:15".
FILLERS: Final = frozenset(
    {"at", "um", "uhr", "de", "del", "of", "the", "le", "den", "der", "om", "kl", "klo", "ore", "alle", "las", "as"}
    | {"a", "hs", "hrs", "h", "u", "ur", "on", "godz", "г", "года", "в", "р", "o'clock", "à", "t"}
)
AFTERNOON: Final = frozenset({"pm", "下午", "午後", "오후"})
MORNING: Final = frozenset({"am", "上午", "午前", "오전"})


def fold(text: str) -> str:
    """A text without case and accents, with digits of ASCII in the place of wide ones."""
    marked = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in marked if not unicodedata.combining(c))).replace("ı", "i")


def _months() -> dict[str, int]:
    months: dict[str, int] = {}
    for names in _LANGUAGES:
        forms: dict[str, set[int]] = {}
        for number, name in enumerate(fold(names).split(), start=1):
            for size in range(min(_SHORTEST, len(name)), len(name) + 1):
                forms.setdefault(name[:size], set()).add(number)
            forms[name] = {number}
        for form, numbers in forms.items():
            if len(numbers) == 1:
                months.setdefault(form, *numbers)
    return months | {fold(name): number for name, number in _SHORT.items()}


MONTHS: Final = _months()
_ENGLISH: Final = _LANGUAGES[0].split()
ENGLISH_MONTHS: Final = {
    **{name[:3]: number for number, name in enumerate(_ENGLISH, start=1)},
    **{name: number for number, name in enumerate(_ENGLISH, start=1)},
    "sept": 9,
}
