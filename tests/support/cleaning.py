"""What tests of cleaning share."""

ENGLISH_FRENCH = {"source_language": "en", "target_language": "fr"}
Row = tuple[str, str, str, str]  # source, target, document, set


def above_zero(counts: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}
