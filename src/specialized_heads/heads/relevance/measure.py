"""Stage: the relevance of every head of one model, averaged over the development set, one column per rule (section 4).

The table has one row per head. The report beside it says how many predictions were averaged, and for each rule how far the
relevance of a level was from the 1 it started with: the median and the largest deviation over all predictions.
"""

import numpy as np
import pyarrow as pa

from specialized_heads import stage
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads.maps import head_numbers
from specialized_heads.heads.relevance.average import average_relevance
from specialized_heads.model.checkpoint import load
from specialized_heads.model.devices import choose_device
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import KINDS
from specialized_heads.sections import Heads
from specialized_heads.stage import Section
from specialized_heads.tables import write_table


class Settings(Section):
    heads: Heads
    device: str


def main() -> None:
    files = stage.arguments(__doc__, files=("model", "dev", "output", "report"))
    settings = Settings.model_validate(files.settings)
    prepare_cpu()
    model = load(files.model, device=choose_device(settings.device))
    dev = load_tokens(files.dev)
    heads = [(kind, layer, head) for kind in KINDS for layer, head in head_numbers(model, kind)]
    columns = {
        name: pa.array([head[field] for head in heads], dtype)
        for field, (name, dtype) in enumerate({"type": pa.string(), "layer": pa.int32(), "head": pa.int32()}.items())
    }
    rules = {}
    for rule in settings.heads.relevance_rules:
        found = average_relevance(model, dev, rule=rule, settings=settings.heads)
        values = np.concatenate([found.heads[a.kind, a.layer] for a in model.attentions(*KINDS)])
        columns[rule] = pa.array(values, pa.float64())
        rules[rule] = found.conservation
        worst = max(level["largest"] for level in found.conservation.values())
        stage.log.info("%s: %d predictions, relevance kept to %.1e", rule, found.steps, worst)
    write_table(files.output, pa.table(columns))
    stage.write_json(files.report, {"sentences": len(dev), "steps": found.steps, "conservation": rules})


if __name__ == "__main__":
    stage.run(main)
