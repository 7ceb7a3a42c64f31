"""Stage: the heads that pruning removed, of every pruned model of a corpus, from what was written down of its gates.

A scope without gates on a type of attention has no dead heads of that type. Layers and heads are numbered from 1.
"""

from specialized_heads import stage
from specialized_heads.model.transformer import KINDS
from specialized_heads.stage import Section


class Row(Section):
    """What the path of a model says of it, in the order of `--gates`."""

    model: str
    seed: int


class Settings(Section):
    rows: list[Row]


def main() -> None:
    files = stage.arguments(__doc__, files=("output",), many=("gates",))
    settings = Settings.model_validate(files.settings)
    found = []
    for row, path in zip(settings.rows, files.gates, strict=True):
        gates = stage.read_json(path)
        heads = {kind: [head for head in gates["rows"] if head["type"] == kind] for kind in KINDS}
        found.append(
            row.model_dump()
            | {key: gates[key] for key in ("scope", "penalty", "heads", "collapse")}
            | {"gated": {kind: len(own) for kind, own in heads.items()}}
            | {
                "dead": {
                    kind: [{"layer": head["layer"], "head": head["head"]} for head in own if not head["kept"]]
                    for kind, own in heads.items()
                }
            }
        )
    stage.write_json(files.output, found)
    stage.log.info("%d models", len(found))


if __name__ == "__main__":
    stage.run(main)
