"""Stage: translate a data set with a model into two files, one sentence per line, in the order of
the set.

One file holds detokenised text. The other holds lower-case Moses tokens, which the paper scores:
the model's own if it was trained on such tokens (`vocabulary.preprocess: paper`), otherwise those
of the detokenised text.
"""

from specialized_heads import stage
from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.preprocess import Mode, apply, undo
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.decoding import translate_all


class Settings(stage.Section):
    decoding: Decoding
    preprocess: Mode
    language: str  # of the translations
    device: str


@stage.command("model", "tokens", "bpe", "output", "tokenised", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load_on(files.model, settings.device)
    store, bpe = load_tokens(files.tokens), load_bpe(files.bpe)
    sources = [store.source_ids(i).tolist() for i in range(len(store))]
    outputs = translate_all(model, sources, show=True, **settings.decoding.model_dump())
    translations = [bpe.decode(ids).replace("\n", " ") for ids in outputs]
    if settings.preprocess == "paper":
        tokenised = [" ".join(line.split()) for line in translations]
    else:
        tokenised = apply(translations, language=settings.language, mode="paper")
    detokenised = undo(translations, language=settings.language, mode=settings.preprocess)
    for path, lines in ((files.output, detokenised), (files.tokenised, tokenised)):
        stage.write_file(path, "".join(line + "\n" for line in lines))
    stage.log.info("%d sentences translated", len(translations))
