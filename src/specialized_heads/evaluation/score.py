"""Stage: sacreBLEU and chrF of a translation, with bootstrap intervals, and its difference from the baseline's.

The p-value is that of paired bootstrap resampling (Koehn 2004) as sacreBLEU computes it: the chance of a difference at
least as large if the two systems were the same.
"""

import os
from pathlib import Path

import pyarrow.parquet as pq
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from specialized_heads import stage

SAMPLES = 1000


def read_lines(path: Path, *, references: list[str]) -> list[str]:
    """The lines of a translation; another number of lines than there are references is a `UserError`."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    if len(lines) != len(references):
        raise stage.UserError(
            f"{path}: {len(lines)} lines for {len(references)} sentences of the test set; translate it again"
        )
    return lines


def main() -> None:
    files = stage.arguments(__doc__, files=("translation", "references", "output"), optional=("baseline",))
    os.environ["SACREBLEU_SEED"] = "12345"
    references = pq.read_table(files.references, columns=["target"]).column("target").to_pylist()
    translation = read_lines(files.translation, references=references)
    bleu, chrf = BLEU(), CHRF()
    score = bleu.corpus_score(translation, [references], n_bootstrap=SAMPLES)
    result = {
        "bleu": score.score,
        "bleu_low": score._mean - score._ci,
        "bleu_high": score._mean + score._ci,
        "chrf": chrf.corpus_score(translation, [references]).score,
        "p_value": None,
        "signature": str(bleu.get_signature()),
        "sentences": len(references),
    }
    if files.baseline:
        baseline = read_lines(files.baseline, references=references)
        # sacreBLEU counts strictly larger differences only and would call no difference at all significant.
        if bleu.corpus_score(baseline, [references]).score == score.score:
            result["p_value"] = 1.0
        else:
            systems = [("baseline", baseline), ("system", translation)]
            metrics = {"BLEU": BLEU(references=[references])}
            _, scores = PairedTest(systems, metrics, references=None, test_type="bs", n_samples=SAMPLES)()
            result["p_value"] = scores["BLEU"][1].p_value
    stage.write_json(files.output, result)
    stage.log.info("BLEU %.2f, chrF %.2f", result["bleu"], result["chrf"])


if __name__ == "__main__":
    stage.run(main)
