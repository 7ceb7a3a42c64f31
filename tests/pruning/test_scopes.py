"""Heads of a scope, which keep the numbers that they had before any pruning."""

from specialized_heads.pruning.scopes import heads_of, remove_heads


def test_heads_of_a_scope_have_their_own_numbers(tiny_model) -> None:
    model = tiny_model(heads=3, width=12)
    model.keep_heads({"encoder": [[1], [0, 2]], "decoder": [[], [1, 2]], "cross": [[0, 2], []]})
    encoder = [("encoder", 1, 2), ("encoder", 2, 1), ("encoder", 2, 3)]
    assert heads_of(model.architecture, scope="encoder") == encoder
    others = [("decoder", 2, 2), ("decoder", 2, 3), ("cross", 1, 1), ("cross", 1, 3)]
    assert heads_of(model.architecture, scope="all") == encoder + others
    remove_heads(model, {("encoder", 2, 1), ("cross", 1, 3), ("cross", 2, 1)})
    assert model.architecture.encoder == ((1,), (2,))
    assert model.architecture.decoder == ((), (1, 2))
    assert model.architecture.cross == ((0,), ())
