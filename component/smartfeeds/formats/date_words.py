"""Words in dates: names of months in large languages, names of time zones, and words without a meaning of their own.

Words are compared without case and accents. A shorter form of a month counts if it means one month only.
"""

import re
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
    # Slovak, Bulgarian, Catalan, Estonian, Lithuanian, Malay
    "januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra",
    "януари февруари март април май юни юли август септември октомври ноември декември",
    "gener febrer març abril maig juny juliol agost setembre octubre novembre desembre",
    "jaanuar veebruar märts aprill mai juuni juuli august september oktoober november detsember",
    "sausio vasario kovo balandžio gegužės birželio liepos rugpjūčio rugsėjo spalio lapkričio gruodžio",
    "januari februari mac april mei jun julai ogos september oktober november disember",
    # Arabic of Egypt and the Gulf, the Maghreb, Morocco and the Levant; Persian, Urdu, Hebrew
    "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    "جانفي فيفري مارس أفريل ماي جوان جويلية أوت سبتمبر أكتوبر نوفمبر ديسمبر",
    "يناير فبراير مارس إبريل ماي يونيه يوليوز غشت شتنبر أكتوبر نونبر دجنبر",
    "كانونالثاني شباط آذار نيسان أيار حزيران تموز آب أيلول تشرينالأول تشرينالثاني كانونالأول",
    "ژانویه فوریه مارس آوریل مه ژوئن ژوئیه اوت سپتامبر اکتبر نوامبر دسامبر",
    "جنوری فروری مارچ اپریل مئی جون جولائی اگست ستمبر اکتوبر نومبر دسمبر",
    "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר",
    "בינואר בפברואר במרץ באפריל במאי ביוני ביולי באוגוסט בספטמבר באוקטובר בנובמבר בדצמבר",
    # Hindi, Bengali, Thai
    "जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
    "जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितम्बर अक्तूबर नवम्बर दिसम्बर",
    "জানুয়ারি ফেব্রুয়ারি মার্চ এপ্রিল মে জুন জুলাই আগস্ট সেপ্টেম্বর অক্টোবর নভেম্বর ডিসেম্বর",
    "มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม",
    "มค กพ มีค เมย พค มิย กค สค กย ตค พย ธค",
)
# Forms that the rule does not give: contractions, a second spelling, and what June and July begin with in French.
_SHORT: Final = {"mrz": 3, "mrt": 3, "setiembre": 9, "jui": 6}
_SHORTEST: Final = 3
# Letters that Arabic, Persian and Urdu write with different characters.
_SAME_LETTERS: Final = str.maketrans({"ی": "ي", "ک": "ك", "ى": "ي", "\u200c": "", "\u0640": ""})
_TWO_WORDS: Final = re.compile("(كانون|تشرين) (?=ال)")
_DOTS_IN_THAI: Final = re.compile(r"(?<=[\u0e00-\u0e7f])\.")
# Months that have numbers instead of names: "5 tháng 3 2024", "Tháng Mười Hai", "thg 3".
_VIETNAMESE: Final = ("gieng", "hai", "ba", "tu", "nam", "sau", "bay", "tam", "chin", "muoi", "muoi mot", "muoi hai")
_VIETNAMESE_MONTH: Final = re.compile(
    rf"\b(?:thang|thg)\s?(?:([0-9]{{1,2}})|({'|'.join(sorted(_VIETNAMESE, reverse=True))}))\b"
)

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
# Of zones that are written out, as "Eastern Standard Time". Most of them have several meanings.
ZONE_WORDS: Final = frozenset(
    {"atlantic", "eastern", "central", "mountain", "pacific", "european", "western", "british", "greenwich", "mean"}
    | {"coordinated", "universal", "standard", "daylight", "summer", "time"}
)

# Words around dates and times, as in "5 de marzo de 2024 a las 10:15" and "5 марта 2024 г. в 10:15".
FILLERS: Final = frozenset(
    {"at", "um", "uhr", "de", "del", "of", "the", "le", "den", "der", "om", "kl", "klo", "ore", "alle", "las", "as"}
    | {"a", "hs", "hrs", "h", "u", "ur", "on", "godz", "г", "года", "в", "р", "o'clock", "à", "t"}
    | {"v", "ve", "ngay", "nam", "luc", "الساعة", "ساعت", "בשעה", "น", "เวลา", "พศ"}
)
AFTERNOON: Final = frozenset({"pm", "下午", "午後", "오후", "مساء", "م", "μμ"})
MORNING: Final = frozenset({"am", "上午", "午前", "오전", "صباحا", "ص", "πμ"})


def fold(text: str) -> str:
    """A text without case and accents, with digits of ASCII, and with one spelling of each month."""
    marked = unicodedata.normalize("NFKD", text.casefold()).translate(_SAME_LETTERS)
    letters = (c if (digit := unicodedata.decimal(c, None)) is None else str(digit) for c in marked)
    text = unicodedata.normalize("NFC", "".join(c for c in letters if not unicodedata.combining(c))).replace("ı", "i")
    return _VIETNAMESE_MONTH.sub(_vietnamese, _DOTS_IN_THAI.sub("", _TWO_WORDS.sub(r"\1", text)))


def _vietnamese(match: re.Match[str]) -> str:
    number = int(match[1]) if match[1] else _VIETNAMESE.index(match[2]) + 1
    return f" {_ENGLISH[number - 1]} " if 1 <= number <= 12 else match[0]


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


_ENGLISH: Final = _LANGUAGES[0].split()
MONTHS: Final = _months()
ENGLISH_MONTHS: Final = {
    **{name[:3]: number for number, name in enumerate(_ENGLISH, start=1)},
    **{name: number for number, name in enumerate(_ENGLISH, start=1)},
    "sept": 9,
}
