"""Stage: train a model from random initialisation: the baseline, or a pruned configuration from scratch.

With `--like`, the model gets the heads of another one, layer by layer, and learns them anew (the "from scratch" column of
table 2). Everything else is the same for both, the seed of the data order included.
"""

from specialized_heads import stage
from specialized_heads.config import Model, Section, Training, Vocabulary
from specialized_heads.model.checkpoint import architecture_of, save
from specialized_heads.model.transformer import Architecture, Transformer, initialise
from specialized_heads.training.loop import Plan, finish, load_data, train
from specialized_heads.training.parallel import team


class Settings(Section):
    seed: int
    vocabulary: Vocabulary
    model: Model
    training: Training
    device: str


def main() -> None:
    files = stage.arguments(__doc__, files=("train", "dev", "output", "records", "state"), optional=("like",))
    settings = Settings.model_validate(files.settings)
    sizes = settings.model
    architecture = (
        architecture_of(files.like)
        if files.like
        else Architecture.full(
            source_vocabulary=settings.vocabulary.source,
            target_vocabulary=settings.vocabulary.target,
            layers=sizes.layers,
            heads=sizes.heads,
            width=sizes.width,
            feed_forward=sizes.feed_forward,
        )
    )
    model = Transformer(architecture, dropout=sizes.dropout)
    initialise(model, seed=settings.seed)
    plan = Plan(seed=settings.seed, **settings.training.model_dump())
    data = load_data(files.train, files.dev)
    with team(settings.device) as (together, device):
        train(model.to(device), plan, data, state=files.state, records=files.records, team=together)
        if together.writes:
            save(model, files.output, training={**files.settings, "data_hash": data.hash})
            finish(files.state)


if __name__ == "__main__":
    stage.run(main)
