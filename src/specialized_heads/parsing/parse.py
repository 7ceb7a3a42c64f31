"""Stage parse: a dependency tree for each analysis sentence (section 5.2).

Three engines: `stanza` parses any text; `conllu` reads trees from a file; `embedded` reads those that are kept in the repository
with an embedded corpus, and fails if one is missing. The report names the parser and its models, and counts the sentences with a
tree. Nothing is downloaded here; the stage of `stanza_engine` does that.
"""

from specialized_heads.experiment.sections import Parser
from specialized_heads.parsing.conllu import conllu_parses, embedded_parses
from specialized_heads.parsing.words import write_parses
from specialized_heads.stage import Files, command, log, write_json
from specialized_heads.tables import read_columns

MANY_MISSING = 0.1  # share of the sentences


class Settings(Parser):
    language: str


@command("text", "output", "report", optional=("resource",), settings=Settings)
def main(args: Files, settings: Settings) -> None:
    """Write `--output` (parses/analysis.parquet) and `--report` (analysis.json) from `--text` (analysis.parquet).

    `--resource` is the file of trees for `embedded` and `conllu`.
    """
    [texts] = read_columns(args.text, "source")
    match settings.engine:
        case "embedded":
            parses, about = embedded_parses(texts, resource=args.resource)
        case "conllu":
            parses, about = conllu_parses(texts, path=args.resource)
        case "stanza":
            from specialized_heads.parsing import stanza_engine  # takes seconds to import

            pipeline = stanza_engine.load_pipeline(**settings.model_dump(include={"language", "directory", "package"}))
            parses = stanza_engine.parse_sentences(pipeline, texts)
            about = stanza_engine.describe(pipeline, package=settings.package)
    write_parses(args.output, parses)
    report = about | {
        "sentences": len(texts),
        "sentences_parsed": sum(map(bool, parses)),
        "words": sum(map(len, parses)),
    }
    write_json(args.report, report)
    without = [text for text, words in zip(texts, parses, strict=True) if not words]
    if len(without) > MANY_MISSING * len(texts):
        log.warning("%d sentences have no tree, first this one: %s", len(without), without[0])
    log.info("%(sentences_parsed)d of %(sentences)d sentences parsed with %(engine)s: %(words)d words", report)
