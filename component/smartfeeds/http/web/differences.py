"""The words in which two texts differ, as HTML: removed words in `del`, added words in `ins`."""

import re
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from smartfeeds.texts import Texts

MAX_WORDS = 1_500  # of each text; a comparison of so many words takes 4 ms, more if the texts are made for it
_WORD = re.compile(r"\S+\s*|\s+")
_SPOKEN = Markup('<span class="unseen">{} </span>')


def highlighted(texts: Texts, former: str, text: str) -> Markup:
    """A text with its differences from a former text. Texts that are too long to compare are shown without them."""
    before, after = _WORD.findall(former), _WORD.findall(text)
    if max(len(before), len(after)) > MAX_WORDS:
        return escape(text)
    parts = []
    for kind, begin, end, new_begin, new_end in SequenceMatcher(None, before, after).get_opcodes():
        if kind == "equal":
            parts.append(escape("".join(after[new_begin:new_end])))
            continue
        # A screen reader does not tell the elements apart from other words.
        for tag, label, words in (
            ("del", texts.say("removed:"), before[begin:end]),
            ("ins", texts.say("added:"), after[new_begin:new_end]),
        ):
            if words:
                spoken = _SPOKEN.format(label)
                parts.append(Markup("<{0}>{1}{2}</{0}>").format(tag, spoken, "".join(words)))
    return Markup("").join(parts)
