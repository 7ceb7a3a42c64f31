"""Stage: the vocabulary of a BERT, learned from the text that it is pre-trained on, and this text as token ids."""

from specialized_heads import stage
from specialized_heads.classification.sentences import read_sentences
from specialized_heads.corpus.wordpiece import Cleaning, learn, read_vocabulary, write_inputs, write_vocabulary

DEV = 2_000  # sentences at most


class Settings(stage.Section):
    size: int
    longest: int  # subwords of an input


@stage.command("vocabulary", "train", "dev", many=("text",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    sets = read_sentences(files.text)
    write_vocabulary(files.vocabulary, learn(sets["train"], size=settings.size), Cleaning())
    vocabulary = read_vocabulary(files.vocabulary)
    for name, texts in (("train", sets["train"]), ("dev", sets["dev"][:DEV])):
        write_inputs(getattr(files, name), vocabulary, texts, [None] * len(texts), longest=settings.longest)
    stage.log.info("%d tokens from %d sentences", vocabulary.size, len(sets["train"]))
