"""Which source files a stage depends on."""

import pytest

from specialized_heads.experiment.source_code import PACKAGE, code, files_of


def names(module: str) -> set[str]:
    return {file.relative_to(PACKAGE).as_posix() for file in files_of(module)}


def test_imports_are_followed_and_the_keys_of_the_configuration_are_not() -> None:
    found = names("pruning.prune")
    assert {"pruning/prune.py", "model/gates.py", "training/loop.py", "stage.py", "__init__.py"} <= found
    assert not found & {
        "experiment/sections.py",
        "experiment/configuration.py",
        "heads/measure.py",
        "experiment/names.py",
    }


def test_the_hash_covers_data_files() -> None:
    before = code("viewer.index", data=("page.css",))
    assert before == code("viewer.index", data=("page.css",))
    assert before != code("viewer.index")
    with pytest.raises(ValueError, match="there is no module viewer.nothing"):
        code("viewer.nothing")
