"""Names of models.

The name is the part of a path before the seed. Only this module writes and parses it:

    baseline
    checkpoint/update500           the baseline after 500 updates
    pruned/encoder_lambda0.01      kind, scope and target, which is a λ ...
    scratch/all_heads12            ... or a number of heads
    cut/relevance_encoder_heads6   kind, criterion, scope, and the target of the pruned model that
                                   has as many heads
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

# Kinds of models, in the order of the tables. pruned: by gates; scratch, count and regularised:
# controls, from random initialisation, in one decay of the learning rate; continued,
# continued_count and continued_regularised: the same in two decays, trained as the baseline and
# then as pruning trains; cut: the baseline without the heads that a criterion leaves out;
# finetuned: the same, trained further.
CONTINUED = {
    "continued": "scratch",
    "continued_count": "count",
    "continued_regularised": "regularised",
}  # by first part
# Kinds of models that are controls of pruning.
CONTROLS = tuple(
    "scratch continued count continued_count regularised continued_regularised".split()
)
KINDS = ("baseline", "checkpoint", "pruned", *CONTROLS, "cut", "finetuned")
TRAINED = ("baseline", "pruned", *CONTROLS, "finetuned")  # the kinds with a log
# Scopes of pruning: encoder heads with the decoder frozen, or heads of all three types.
Scope = Literal["encoder", "all"]
SCOPES = get_args(Scope)
Criterion = Literal["gates", "importance", "relevance", "confidence", "random"]
# What the description of a pruned model says of its gates.
CERTAINTY = ("expected", "decided", "by_order", "loss_hard", "loss_soft")
MIN_DECIDED = 0.8  # share of decided gates; with fewer, the model is a rounding of its soft gates
# Patterns of the wildcards in paths.
SCOPE = "|".join(SCOPES)
TARGET = r"lambda[0-9.e+-]+|heads\d+"
CRITERION = "[a-z]+"
MODEL = rf"baseline|checkpoint/update\d+|[a-z_]+/({CRITERION}_)?({SCOPE})_({TARGET})"


@dataclass(frozen=True)
class Target:
    """What pruning aims at: exactly one of a λ (per head, in nats per target token) and a number of
    heads."""

    lam: float | None = None
    heads: int | None = None

    @property
    def prunes(self) -> bool:
        """Whether heads can go: λ 0 only trains on."""
        return self.lam != 0

    def __str__(self) -> str:
        if self.heads is not None:
            return f"heads{self.heads}"
        # The shortest decimal that reads back as the same number.
        return f"lambda{float(self.lam or 0)!r}".removesuffix(".0")

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read `lambda0.01` or `heads6`; a `ValueError` for anything else."""
        if not re.fullmatch(TARGET, text):
            raise ValueError(f"{text!r} is not a target such as lambda0.01 or heads6")
        if text.startswith("heads"):
            return cls(heads=int(text.removeprefix("heads")))
        return cls(lam=float(text.removeprefix("lambda")))


@dataclass(frozen=True)
class Name:
    """The name of a model, taken apart. `update` is set for checkpoints alone, scope and target for
    all pruned models."""

    kind: str
    scope: str = ""
    target: Target = Target()
    criterion: str = ""
    update: int | None = None

    def __str__(self) -> str:
        if self.update is not None:
            return f"{self.kind}/update{self.update}"
        if not self.scope:
            return self.kind
        return f"{self.kind}/" + "_".join(
            filter(None, [self.criterion, self.scope, str(self.target)])
        )

    def own_seed(self, seed: int) -> int:
        """Seed of this model's order of the text, dropout, gate noise and, if it is trained from
        scratch, initial weights.

        It depends on all of the name, so that models of one baseline are independent draws: with
        the same order and noise, two λ would agree in the heads that they keep for that reason too.
        """
        return int.from_bytes(hashlib.sha256(f"{self}/seed{seed}".encode()).digest()[:4])

    @classmethod
    def parse(cls, text: str) -> "Name":
        """Read the name of a model; a `ValueError` for any other text."""
        if not re.fullmatch(MODEL, text):
            raise ValueError(f"{text!r} is not the name of a model")
        kind, _, rest = text.partition("/")
        if kind == "baseline":
            return cls(kind)
        if kind == "checkpoint":
            return cls(kind, update=int(rest.removeprefix("update")))
        *criterion, scope, target = rest.split("_")
        return cls(kind, scope, Target.parse(target), *criterion)


def columns(name: str, seed: int | None = None) -> dict[str, Any]:
    """The key columns of a model of this name; a `ValueError` for any other text."""
    model = Name.parse(name)
    how = {
        "kind": model.kind,
        "model": name.rpartition("/")[2],
        "scope": model.scope,
        "criterion": model.criterion,
        "seed": seed,
        "update": model.update,
    }
    return how | {"lam": model.target.lam, "target_heads": model.target.heads}
