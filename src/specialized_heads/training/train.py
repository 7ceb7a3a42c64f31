"""Stage: train a model from random initialisation: the baseline, or a pruned configuration from scratch.

With `--like`, the model gets the heads of another one, layer by layer, and learns them anew (the "from scratch" column of
table 2); with `evenly`, as many heads of each attention type as the other one has, but spread evenly over the layers.
Data, their order and the training are the same for all; a smaller model draws its weights for its own size.

With `--checkpoints`, the weights at the updates `moments` are written too, all in one file, as `update{n}/{parameter}`.
They are those of that very update, also where the model itself is an average.
"""

from dataclasses import replace

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of, save, write_tensors
from specialized_heads.model.transformer import KINDS, Architecture, Transformer, initialise
from specialized_heads.sections import Model, Training, Vocabulary
from specialized_heads.stage import Section
from specialized_heads.training.loop import Plan, load_data, train
from specialized_heads.training.parallel import team
from specialized_heads.training.state import finish, read_moment


class Settings(Section):
    seed: int
    vocabulary: Vocabulary
    model: Model
    training: Training
    device: str
    evenly: bool = False  # only with `--like`
    moments: list[int] = []  # updates, ascending; only with `--checkpoints`


def spread_evenly(architecture: Architecture) -> Architecture:
    """As many heads of each attention type, spread over the layers so that they differ by one head at most.

    The lower layers have one more where the number of heads does not divide by that of layers. Heads are numbered anew.
    """
    spread = {}
    for kind in KINDS:
        layers = getattr(architecture, kind)
        share, left = divmod(sum(map(len, layers)), len(layers))
        spread[kind] = tuple(tuple(range(share + (number < left))) for number in range(len(layers)))
    return replace(architecture, **spread)


def main() -> None:
    files = stage.arguments(
        __doc__, files=("train", "dev", "output", "records", "state"), optional=("like", "checkpoints")
    )
    settings = Settings.model_validate(files.settings)
    late = [update for update in settings.moments if update > settings.training.updates]
    if late:
        raise stage.UserError(
            f"settings: moments: {late[0]} is after the last of {settings.training.updates} updates; leave it out"
        )
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
    if settings.evenly:
        architecture = spread_evenly(architecture)
    model = Transformer(architecture, dropout=sizes.dropout)
    initialise(model, seed=settings.seed)
    plan = Plan(seed=settings.seed, moments=tuple(settings.moments), **settings.training.model_dump())
    data = load_data(files.train, files.dev)
    with team(settings.device) as (together, device):
        used = train(model.to(device), plan, data, state=files.state, records=files.records, team=together)
        if together.writes:
            save(model, files.output, training={**files.settings, "products": used, "data_hash": data.hash})
            if files.checkpoints:
                kept = {n: read_moment(files.state, n) for n in settings.moments}
                tensors = {f"update{n}/{name}": tensor for n, own in kept.items() for name, tensor in own.items()}
                write_tensors(files.checkpoints, tensors)
            finish(files.state)


if __name__ == "__main__":
    stage.run(main)
