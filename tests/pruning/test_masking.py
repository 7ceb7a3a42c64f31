"""Many removals in one pass: each equals the model without these heads, and a kill loses no pass that was finished."""

import copy
from pathlib import Path

import pytest

from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.architecture import heads_of
from specialized_heads.model.decoding import translate
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning import masking
from specialized_heads.pruning.masking import NOTHING, Removal, passes, translate_set, translate_without

SOURCES = [[5, 9, 4, 17], [8], [], [11, 12, 13], [7, 7, 7, 4, 15, 6]]
DECODING = Decoding(beam=3, max_length_ratio=1.5)
UNEVEN = {"encoder": [[1], [0, 2]], "decoder": [[], [1, 2]], "cross": [[0, 1, 2], [2]]}


@pytest.fixture(params=["full", "uneven"])
def model(request: pytest.FixtureRequest, tiny_model) -> Transformer:
    model = tiny_model(seed=3, heads=3, width=12)
    if request.param == "uneven":
        model.keep_heads(UNEVEN)
    return model


def without(model: Transformer, removal: Removal) -> Transformer:
    """A copy from which these heads are physically gone."""
    smaller = copy.deepcopy(model)
    smaller.remove_heads(removal)
    return smaller


def some_removals(model: Transformer) -> list[Removal]:
    """Each head, the other heads of each layer, and growing sets across all types."""
    heads = heads_of(model.architecture, scope="all")
    others = [frozenset(o for o in heads if o[:2] == h[:2] and o != h) for h in heads]
    return [frozenset([h]) for h in heads] + others + [frozenset(heads[::-1][:n]) for n in range(len(heads) + 1)]


def test_masks_equal_removal(model: Transformer) -> None:
    removals = some_removals(model)
    found = translate_without(model, SOURCES, removals, decoding=DECODING)
    assert len(found) == len(removals)
    for removal, outputs in zip(removals, found, strict=True):
        assert outputs == translate(without(model, removal), SOURCES, **DECODING.model_dump()), sorted(removal)
    # The masks do something.
    assert len({str(outputs) for outputs in found}) > len(heads_of(model.architecture, scope="all"))
    assert all(attention.gate is None for attention in model.attentions())


def test_passes_hold_every_removal_once_and_do_not_mix_encoder_and_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "REMOVALS", 3)
    decoder = [frozenset([(kind, 1, head)]) for kind in ("decoder", "cross") for head in (1, 2)]
    encoder = [frozenset([("encoder", 1, head), ("cross", 1, 1)]) for head in range(1, 6)]
    groups = passes({NOTHING, *encoder, *decoder})
    assert sorted(map(len, groups)) == [1, 1, 2, 3, 3]
    assert groups[0] == [NOTHING]
    assert {removal for group in groups for removal in group} == {NOTHING, *encoder, *decoder}
    for group in groups:
        assert len({any(kind == "encoder" for kind, _, _ in removal) for removal in group}) == 1


def test_the_state_survives_a_kill(model: Transformer, store, sentences, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(masking, "REMOVALS", 2)
    monkeypatch.setattr(masking, "TOKENS", 30)
    data = store(*sentences(12))
    removals = some_removals(model)[:7]

    def run(folder: str, stamp: str = "a") -> dict:
        return translate_set(model, data, removals, decoding=DECODING, state=tmp_path / folder, fingerprint=stamp)

    undisturbed = run("other")
    assert list(undisturbed) == [NOTHING, *removals]
    sources = [data.source_ids(sentence).tolist() for sentence in range(12)]
    assert undisturbed[removals[0]] == translate(without(model, removals[0]), sources, **DECODING.model_dump())
    done, whole = [], translate_without

    def until_killed(model, sources, group, *, decoding):
        if len(done) > 8:
            raise KeyboardInterrupt
        done.append(set(group))
        return whole(model, sources, group, decoding=decoding)

    def only_the_rest(model, sources, group, *, decoding):
        again.append(set(group))
        return whole(model, sources, group, decoding=decoding)

    monkeypatch.setattr(masking, "translate_without", until_killed)
    with pytest.raises(KeyboardInterrupt):
        run("run")
    again: list[set] = []
    monkeypatch.setattr(masking, "translate_without", only_the_rest)
    assert run("run") == undisturbed
    assert NOTHING not in set().union(*again) and 0 < len(set().union(*again)) < 7
    again.clear()
    assert run("run") == undisturbed and not again
    assert run("run", "b") == undisturbed and again  # another fingerprint starts over


def test_the_fingerprint_covers_files_and_settings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    stamps = {masking.fingerprint(tmp_path / "file", settings={"beam": beam}) for beam in (4, 5)}
    (tmp_path / "file").write_text("2")
    assert len(stamps | {masking.fingerprint(tmp_path / "file", settings={"beam": 4})}) == 3
