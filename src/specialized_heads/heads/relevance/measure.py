"""Stage: the relevance of every head of one model, averaged over predictions for the development set (section 4).

The table has one row per head and, for each rule, the mean and its standard error, `<rule>_error`. The report has the number of
predictions, and for each rule its conservation (the median and largest deviation from 1 of the relevance that arrives at each
level) and its stability between random halves of the set. All rules have the same predictions.
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
    predictions: int
    seed: int
    device: str


@stage.command("model", "dev", "output", "report", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load_on(files.model, settings.device)
    dev = load_tokens(files.dev)
    averages = average_relevance(model, dev, rules=settings.rules, predictions=settings.predictions, seed=settings.seed)
    heads = [(kind, layer, head) for kind in KINDS for layer, head in head_numbers(model, kind)]
    columns = [[head[field] for head in heads] for field in range(3)]
    schema = pa.schema(HEAD)
    report = {"sentences": len(dev), "conservation": {}, "stability": {}}
    for rule, average in averages.items():
        for name, values in ((rule, average.heads), (f"{rule}_error", average.errors)):
            columns.append(np.concatenate(list(values.values())))
            schema = schema.append(pa.field(name, pa.float64()))
        report["steps"] = int(average.steps.sum())
        report["conservation"][rule] = average.conservation
        report["stability"][rule] = stability(average)
        worst = max(level["largest"] for level in average.conservation.values())
        stage.log.info("%s: %d predictions, relevance conserved to %.1e", rule, report["steps"], worst)
    write_table(files.output, pa.table(columns, schema=schema))
    stage.write_json(files.report, report)
