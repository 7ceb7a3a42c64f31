"""Everything that computes on a GPU, on the simulated one and on the CPU: prints one line of JSON
per case.

`python simulated_runs.py` prints, for each case, how far the two results are apart and the waits of
the host. The test reads these lines; a process of its own is needed because `simulated_gpu` changes
torch.
"""

from simulated_gpu import GPU, held, values, waits  # isort: skip - before the project

import copy
import itertools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from small import PRUNING, TRAINING, killed_at, outputs

from specialized_heads.classification.scores import predict
from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.experiment.sections import Decoding
from specialized_heads.heads import maps
from specialized_heads.heads.relevance import average_relevance
from specialized_heads.model import bert, checkpoint, devices
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.decoding import translate_all
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.pruning import prune
from specialized_heads.pruning.ablation import passes, removals, translate_set
from specialized_heads.pruning.criteria import importances
from specialized_heads.training import loop, state
from specialized_heads.training.loop import Data, Plan
from specialized_heads.training.objective import ConstantLambda, HeadCountController

devices.multiplies_bf16 = lambda device: True
# several micro-batches in an update
PLAN = TRAINING | {"seed": 1, "updates": 6, "micro_batch_tokens": 30, "warmup": 2}
PLAN |= {"learning_rate": 0.01, "gate_learning_rate": 0.1}
random = np.random.default_rng(1)


def store(sentences: int) -> TokenStore:
    offsets = np.cumsum([0, *random.integers(1, 8, sentences)])
    ids = random.integers(4, 20, offsets[-1]).astype(np.int32)
    return TokenStore(ids, offsets, ids, offsets)


DATA = Data(store(40), store(8), "")
SIZES = {
    "source_vocabulary": 20,
    "target_vocabulary": 20,
    "width": 8,
    "feed_forward": 12,
    "layers": 2,
    "heads": 2,
}
MODEL = Transformer(Architecture.full(**SIZES), dropout=0.0)
initialise(MODEL, seed=1)
OURS = copy.deepcopy(MODEL).to(GPU)
for each in (MODEL, OURS):
    each.eval()


def show(case: str, **found: object) -> None:
    print(json.dumps({"case": case} | found), flush=True)


def apart(ours: object, expected: object) -> float:
    """The largest difference of two results: arrays, or dictionaries and lists of them."""
    if isinstance(ours, dict):
        assert ours.keys() == expected.keys()
        return max(apart(ours[key], expected[key]) for key in ours)
    if isinstance(ours, list):
        return max(itertools.starmap(apart, zip(ours, expected, strict=True)), default=0.0)
    return float(np.abs(np.asarray(ours, float) - np.asarray(expected, float)).max(initial=0.0))


def both(case: str, compute: Callable[[Transformer], object]) -> None:
    show(case, apart=apart(compute(OURS), compute(MODEL)))


def trained(
    start, data: Data, folder: Path, *, penalty=None, gated: bool = True, **settings: object
) -> list[int]:
    """Train in place; the waits of each update."""
    if gated:
        prune.attach_gates(start, scope="all")
        start.to(start.device)
    step, waited = loop._Run.step, []

    def counted(run: object, update: object) -> None:
        before = len(waits)
        step(run, update)
        waited.append(len(waits) - before)

    loop._Run.step = counted
    try:
        plan = Plan(**PLAN | settings)
        loop.train(
            start, plan, data, state=folder / "state", records=folder / "log.jsonl", penalty=penalty
        )
    finally:
        loop._Run.step = step
    return waited


def compare_trainings(
    case: str, model: object, data: Data, make_penalty: Callable[[], object], **settings: object
) -> None:
    weights, waited = [], []
    for device in ("cpu", GPU):
        start, folder = copy.deepcopy(model).to(device), Path(tempfile.mkdtemp())
        waited = trained(
            start,
            data,
            folder,
            penalty=make_penalty(),
            gated=make_penalty() is not None,
            **settings,
        )
        weights.append(values(start))
    show(case, apart=apart(*weights), waits=waited)


def relevance(model: Transformer) -> list[dict]:
    rules = ["z_plus", "alpha_beta", "epsilon"]
    return [
        each.heads
        for each in average_relevance(model, DATA.dev, rules=rules, predictions=20, seed=1).values()
    ]


def main() -> None:
    sources = [DATA.dev.source_ids(n).tolist() for n in range(len(DATA.dev))]
    search = {"beam": 4, "max_length_ratio": 2.0}
    both("translation", lambda model: translate_all(model, sources, **search))
    before = len(waits)
    both("relevance", relevance)
    show("waits of relevance", waits=len(waits) - before)
    both("importance", lambda model: importances(model, DATA.dev))
    both(
        "analysis",
        lambda model: [dict(batch.weights) for batch in maps.attention_maps(model, DATA.dev)],
    )
    penalties = {
        "plain": lambda: None,
        "λ": lambda: ConstantLambda(0.01),
        "controller": lambda: HeadCountController(6, 12),
    }
    for precision, optimizer in itertools.product(("fp32", "bf16"), ("adam", "muon")):
        for name, make_penalty in penalties.items():
            if precision == "bf16" and name != "λ":
                continue
            case = f"training {precision} {optimizer} {name}"
            updates = 12 if name == "controller" else 6
            compare_trainings(
                case,
                MODEL,
                DATA,
                make_penalty,
                precision=precision,
                optimizer=optimizer,
                updates=updates,
            )
    resume()
    pruned()
    removed = [removal for _, removal in removals(MODEL.architecture, alone=True)]
    both(
        "ablation",
        lambda m: [
            translate_set(m, DATA.dev, group, decoding=Decoding(**search))
            for group in passes(removed)
        ],
    )
    of_bert()


def resume() -> None:
    """A training on the GPU that is killed after its fourth update and goes on."""
    whole, killed = copy.deepcopy(OURS), copy.deepcopy(OURS)
    trained(whole, DATA, Path(tempfile.mkdtemp()), penalty=ConstantLambda(0.01))
    prune.attach_gates(killed, scope="all")
    killed.to(GPU)
    before, folder = copy.deepcopy(killed), Path(tempfile.mkdtemp())
    run = {
        "state": folder / "state",
        "records": folder / "log.jsonl",
        "penalty": ConstantLambda(0.01),
    }
    with killed_at(12):
        loop.train(killed, Plan(**PLAN), DATA, **run)
    saved = (folder / "state" / "state.pt").is_file()
    loop.train(before, Plan(**PLAN), DATA, **run)
    show("killed and resumed", apart=apart(values(before), values(whole)), saved=saved)


def pruned() -> None:
    """From a baseline to the files of the pruned model, as the stage makes them."""
    written = []
    own = {"dropout": 0.0, "device": "auto", "lam": 0.02, "gate_learning_rate": 0.5}
    settings = prune.Settings(**PRUNING | own)
    prune.load_data = lambda train, dev: DATA
    for device in ("cpu", GPU):
        state.choose_device = lambda name, device=device: (
            held(loop.torch.zeros(1)).device if device == "cpu" else device
        )
        folder, model = Path(tempfile.mkdtemp()), copy.deepcopy(MODEL)
        prune.freeze(model, scope="encoder")
        named = outputs(folder) | {"gates": folder / "gates.json"}
        files = SimpleNamespace(train=None, dev=None, settings={}, **named)
        prune.train_gates(model, settings, files, updates_key="pruning.updates")
        model = checkpoint.load(files.output)
        written.append(
            (model.architecture, values(model), json.loads(files.gates.read_text())["kept"])
        )
    (ours, weights, kept), (architecture, expected, _) = written
    show(
        "pruning to the written model",
        apart=apart(weights, expected),
        same=ours == architecture,
        kept=kept,
    )


def of_bert() -> None:
    """Pre-training, fine-tuning, prediction and ablation of a BERT."""
    heads = ((0, 1), (0, 1))
    shape = {
        "vocabulary": 20,
        "width": 8,
        "feed_forward": 12,
        "head_width": 4,
        "encoder": heads,
        "positions": 32,
    }
    special = {"pad": 0, "separator": 2, "mask": 3}
    for labels, name in ((0, "pre-training"), (2, "fine-tuning")):
        model = bert.Bert(bert.BertArchitecture(**shape, labels=labels, **special), dropout=0.0)
        bert.initialise(model, seed=1)
        data = DATA if not labels else Data(*map(labelled, (DATA.train, DATA.dev)), "")
        compare_trainings(f"BERT {name}", model, data, lambda: None, updates=3)
    ours = copy.deepcopy(model).to(GPU)
    wanted = [removal for _, removal in removals(model.architecture, alone=True)]
    for each in (model, ours):
        each.eval()
    show("BERT prediction", apart=apart(predict(ours, data.dev), predict(model, data.dev)))
    show(
        "BERT ablation",
        apart=apart(predict(ours, data.dev, wanted), predict(model, data.dev, wanted)),
    )


def labelled(sentences: TokenStore) -> TokenStore:
    """The same sentences, each with a label as its target."""
    labels = random.integers(0, 2, len(sentences)).astype(np.int32)
    return TokenStore(
        sentences.source, sentences.source_offsets, labels, np.arange(len(sentences) + 1)
    )


if __name__ == "__main__":
    main()
