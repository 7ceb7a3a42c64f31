"""A pickle that does something when it is opened: it makes a file in the current folder."""

from typing import Any

PAYLOAD = "payload"  # the name of that file, and of what other hostile inputs try to make


class Payload:
    """What a careless reader of pickles would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (PAYLOAD, "w"))
