"""Functions that are a share of an encoder head's argmaxes: what is counted for each, and the columns that it gets."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from specialized_heads.heads.rare_words import rare_hits


class Share(NamedTuple):
    """A measure of heads; `columns`: of the table of heads, the share of each of its counts.

    count: takes the argmaxes (B, H, T), which tokens are queries (B, T) and their ids (B, T), and by name `ranks` of ids by
    frequency (V,), `pieces`, the text of each id (V), and `cutoff`, `heads.rare_cutoff`; returns the hits (columns, H) and the
    number of queries counted.
    """

    columns: tuple[str, ...]
    count: Callable[..., tuple[Tensor, int]]


SHARES = (Share(("rarest", "two_rarest"), rare_hits),)
COLUMNS = tuple(column for share in SHARES for column in share.columns)
