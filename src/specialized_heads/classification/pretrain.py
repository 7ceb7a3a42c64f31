"""Stage: pre-train a BERT by masked language modelling (Devlin et al. 2019), without next-sentence prediction."""

from specialized_heads import stage
from specialized_heads.classification.wordpiece import read_vocabulary
from specialized_heads.config.sections import Training
from specialized_heads.model.bert import Bert, BertArchitecture, initialise
from specialized_heads.model.checkpoint import save
from specialized_heads.stage import Section
from specialized_heads.training.loop import Plan, load_data, train
from specialized_heads.training.parallel import distributed
from specialized_heads.training.state import finish


class Settings(Section):
    seed: int
    layers: int
    heads: int
    width: int
    feed_forward: int
    longest: int  # subwords of an input
    dropout: float
    training: Training
    device: str


def main() -> None:
    files = stage.arguments(__doc__, files=("vocabulary", "train", "dev", "output", "records", "state"))
    settings = Settings.model_validate(files.settings)
    vocabulary = read_vocabulary(files.vocabulary)
    architecture = BertArchitecture.full(
        **settings.model_dump(include={"layers", "heads", "width", "feed_forward"}),
        vocabulary=vocabulary.size,
        positions=settings.longest,
        labels=0,
        pad=vocabulary.special.pad,
        separator=vocabulary.special.eos,
        mask=vocabulary.mask,
    )
    model = Bert(architecture, dropout=settings.dropout)
    initialise(model, seed=settings.seed)
    plan = Plan(seed=settings.seed, **settings.training.model_dump())
    data = load_data(files.train, files.dev)
    with distributed(settings.device) as (context, device):
        used = train(model.to(device), plan, data, state=files.state, records=files.records, context=context)
        if context.is_main:
            save(model, files.output, training={**files.settings, "matmul_precision": used, "data_hash": data.hash})
            finish(files.state)


if __name__ == "__main__":
    stage.run(main)
