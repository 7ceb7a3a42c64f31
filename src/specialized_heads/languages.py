"""Language codes: `en`, or with a script or region after a hyphen or underscore (`pt_BR`,
`zh-Hant`).

Codes of ISO 639-1 have two letters; corpora and models also use three-letter codes (`zho_Hans`), of
which a language may have several: a bibliographic one, and that of the main language of a group.
"""

import difflib

import langcodes

# Two-letter code: equivalent three-letter codes.
SAME = {
    "af": "afr", "am": "amh", "ar": "ara arb", "as": "asm", "az": "aze azj", "ba": "bak",
    "be": "bel", "bg": "bul", "bn": "ben", "bo": "bod tib", "br": "bre", "bs": "bos", "ca": "cat",
    "ce": "che", "cs": "ces cze", "cv": "chv", "cy": "cym wel", "da": "dan", "de": "deu ger",
    "dz": "dzo", "el": "ell gre", "en": "eng", "eo": "epo", "es": "spa", "et": "est ekk",
    "eu": "eus baq", "fa": "fas per pes", "fi": "fin", "fo": "fao", "fr": "fra fre", "fy": "fry",
    "ga": "gle", "gd": "gla", "gl": "glg", "gu": "guj", "ha": "hau", "he": "heb", "hi": "hin",
    "hr": "hrv", "hu": "hun", "hy": "hye arm", "id": "ind", "ig": "ibo", "is": "isl ice",
    "it": "ita", "ja": "jpn", "ka": "kat geo", "kk": "kaz", "km": "khm", "kn": "kan", "ko": "kor",
    "ku": "kur kmr", "ky": "kir", "lb": "ltz", "lo": "lao", "lt": "lit", "lv": "lav lvs",
    "mg": "mlg plt", "mi": "mri mao", "mk": "mkd mac", "ml": "mal", "mn": "mon khk", "mr": "mar",
    "ms": "msa may zsm", "mt": "mlt", "my": "mya bur", "nb": "nob", "ne": "nep npi",
    "nl": "nld dut", "nn": "nno", "no": "nor", "oc": "oci", "or": "ori ory", "pa": "pan",
    "pl": "pol", "ps": "pus pbt", "pt": "por", "rm": "roh", "ro": "ron rum", "ru": "rus",
    "rw": "kin", "sa": "san", "sd": "snd", "si": "sin", "sk": "slk slo", "sl": "slv", "so": "som",
    "sq": "sqi alb als", "sr": "srp", "st": "sot", "sv": "swe", "sw": "swa swh", "ta": "tam",
    "te": "tel", "tg": "tgk", "th": "tha", "ti": "tir", "tk": "tuk", "tl": "tgl", "tn": "tsn",
    "tr": "tur", "tt": "tat", "ug": "uig", "uk": "ukr", "ur": "urd", "uz": "uzb uzn", "vi": "vie",
    "wo": "wol", "xh": "xho", "yi": "yid ydd", "yo": "yor", "zh": "zho chi cmn", "zu": "zul",
}  # fmt: skip
TWO_LETTERS = {three: two for two, same in SAME.items() for three in same.split()}


def without_region(code: str) -> str:
    """The language of a code without script and region, in two letters if possible: `pt` for
    `pt_BR`, `zh` for `zho_Hans`."""
    language = _first(code)
    return TWO_LETTERS.get(language, language)


def known(code: str) -> str:
    """The code, if it begins with that of a language (IANA's registry, which has those of ISO 639);
    else a `ValueError`."""
    language = _first(code)
    if not langcodes.tag_is_valid(language):
        raise ValueError(
            f"{language!r} is not the code of a language (ISO 639); "
            f"the likely one is {_likely(language)!r}"
        )
    return code


def doubtful(code: str) -> str:
    """A warning if the code is that of a rare language and of a country with a common one, as `kr`
    and `se` are; else empty."""
    language = _first(code)
    meant = _of_country(language)
    # Any language may be common where people write English.
    if language in SAME or meant not in SAME or meant == "en":
        return ""
    said = f"{code!r} is not the language of the country {language.upper()}"
    return f"{said}; write {meant!r} if you mean that one"


def _first(code: str) -> str:
    return code.lower().replace("_", "-").partition("-")[0]


def _of_country(code: str) -> str:
    """The language used most in the country with this two-letter code; empty if there is none."""
    country = langcodes.Language.make(territory=code.upper())
    return (country.maximize().language or "") if len(code) == 2 and country.is_valid() else ""


def _likely(code: str) -> str:
    """A code of a language for one that is none: that of the country with this code, or else the
    most similar one."""
    similar = difflib.get_close_matches(code, [*SAME, *TWO_LETTERS], n=1, cutoff=0.0)
    return _of_country(code) or without_region(similar[0])
