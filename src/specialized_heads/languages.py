"""Codes of languages: `en`, or with a script or region, written with a hyphen or an underscore (`pt_BR`, `zh-Hant`)."""


def without_region(code: str) -> str:
    """The language of a code, in lower case: `pt` for `pt_BR`. What is known of a language seldom depends on the rest."""
    return code.lower().replace("_", "-").partition("-")[0]
