"""Stage: the relevance of every head of one model, averaged over the development set, one column per rule (section 4).

The table has one row per head. The report has the number of predictions, and for each rule its conservation (the median and
largest deviation from 1 of the relevance that arrives at each level) and its stability between random halves of the set.
"""

import numpy as np
import pyarrow as pa

from specialized_heads import stage
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads.maps import head_numbers
from specialized_heads.heads.relevance.average import average_relevance, stability
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import load_on
from specialized_heads.tables import HEAD, write_table


class Settings(stage.Section):
    rules: list[str]
    device: str


@stage.command("model", "dev", "output", "report", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load_on(files.model, settings.device)
    dev = load_tokens(files.dev)
    heads = [(kind, layer, head) for kind in KINDS for layer, head in head_numbers(model, kind)]
    columns = [[head[field] for head in heads] for field in range(3)]
    schema = pa.schema(HEAD)
    report = {"sentences": len(dev), "conservation": {}, "stability": {}}
    for rule in settings.rules:
        average = average_relevance(model, dev, rule=rule)
        columns.append(np.concatenate([average.heads[a.kind, a.layer] for a in model.attentions()]))
        schema = schema.append(pa.field(rule, pa.float64()))
        report["steps"] = int(average.steps.sum())
        report["conservation"][rule] = average.conservation
        report["stability"][rule] = stability(average)
        worst = max(level["largest"] for level in average.conservation.values())
        stage.log.info("%s: %d predictions, relevance conserved to %.1e", rule, report["steps"], worst)
    write_table(files.output, pa.table(columns, schema=schema))
    stage.write_json(files.report, report)
