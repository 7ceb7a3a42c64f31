"""Stage: sacreBLEU and chrF of a translation, with bootstrap intervals, and its difference from the baseline's.

There are two kinds of BLEU. `bleu` is that of detokenised text against the raw references, with sacreBLEU's own tokeniser:
the one to compare between papers. It ignores case where the model knows lower case alone (`vocabulary.preprocess: paper`),
as chrF then does. `bleu_tokenised` is computed as the paper's code computes it on the development set: of lower-case Moses
tokens, as they are, on both sides. Each has its signature, which also says how `bleu_tokenised` got its tokens.

The p-value (`significance`) is the chance of a difference at least as large if the two systems were the same; `difference`
is that of `bleu` from the baseline's, with the 95% interval of the same paired bootstrap.
"""

import os
from importlib.metadata import version
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from specialized_heads import stage
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.evaluation.significance import SAMPLES, SEED, compare
from specialized_heads.stage import Section
from specialized_heads.tables import read_table


class Settings(Section):
    preprocess: Mode
    language: str  # of the translation


def read_lines(path: Path, *, references: list[str]) -> list[str]:
    """The lines of a translation; another number of lines than there are references is a `UserError`."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise stage.UserError(f"{path}: damaged ({error}); delete it and run again") from None
    if len(lines) != len(references):
        raise stage.UserError(
            f"{path}: {len(lines)} lines for {len(references)} sentences of the test set; delete it and run again"
        )
    return lines


def main() -> None:
    files = stage.arguments(__doc__, files=("translation", "tokenised", "references", "output"), optional=("baseline",))
    settings = Settings.model_validate(files.settings)
    os.environ["SACREBLEU_SEED"] = SEED
    references = read_table(files.references, columns=["target"]).column("target").to_pylist()
    translation = read_lines(files.translation, references=references)
    lowercase = settings.preprocess == "paper"
    bleu, chrf = BLEU(lowercase=lowercase), CHRF(lowercase=lowercase)
    score = bleu.corpus_score(translation, [references], n_bootstrap=SAMPLES)

    tokens = read_lines(files.tokenised, references=references)
    reference_tokens = apply(references, language=settings.language, mode="paper")
    tokenised_bleu = BLEU(lowercase=True, tokenize="none", force=True)  # force: tokens are meant to be tokens
    tokenised = tokenised_bleu.corpus_score(tokens, [reference_tokens], n_bootstrap=SAMPLES)
    moses = f"moses.{settings.language}-sacremoses-{version('sacremoses')}"
    result = {
        "bleu": score.score,
        "bleu_low": score._mean - score._ci,
        "bleu_high": score._mean + score._ci,
        "chrf": chrf.corpus_score(translation, [references]).score,
        **dict.fromkeys(("p_value", "difference", "difference_low", "difference_high")),
        "signature": str(bleu.get_signature()),
        "signature_chrf": str(chrf.get_signature()),
        "bleu_tokenised": tokenised.score,
        "bleu_tokenised_low": tokenised._mean - tokenised._ci,
        "bleu_tokenised_high": tokenised._mean + tokenised._ci,
        "signature_tokenised": f"{tokenised_bleu.get_signature()}|tokens:{moses}",
        "sentences": len(references),
    }
    if files.baseline:
        baseline = read_lines(files.baseline, references=references)
        whole, [found], _ = compare(baseline, [translation], references, lowercase=lowercase)
        result |= {"p_value": found.p_value, "difference": found.bleu - whole}
        result |= {"difference_low": found.low, "difference_high": found.high}
    stage.write_json(files.output, result)
    stage.log.info(
        "BLEU %.2f, of Moses tokens %.2f; chrF %.2f", result["bleu"], result["bleu_tokenised"], result["chrf"]
    )


if __name__ == "__main__":
    stage.run(main)
