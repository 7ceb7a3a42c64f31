"""Stage: the score of a model on the test set and on the second one, with intervals and the difference from the baseline."""

from specialized_heads import stage
from specialized_heads.classification.metrics import compare, labels_of, predict
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.model.checkpoint import load_on


class Settings(stage.Section):
    metric: str
    device: str
    precision: str = "fp32"  # of matrix products


@stage.command("model", "baseline", "test", "output", optional=("second",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model, baseline = (load_on(path, settings.device, settings.precision) for path in (files.model, files.baseline))
    written: dict[str, object] = {"metric": settings.metric}
    how = {"metric": settings.metric, "kinds": model.architecture.labels}
    for name, path in (("test", files.test), ("second", files.second)):
        if path is None:
            continue
        store = load_tokens(path)
        found = compare(labels_of(store), predict(model, store), predict(baseline, store), **how)
        written[name] = found._asdict() | {"sentences": len(store)}
        stage.log.info("%s: %s %.2f", name, settings.metric, found.score)
    stage.write_json(files.output, written)
