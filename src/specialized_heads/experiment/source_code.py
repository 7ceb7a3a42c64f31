"""A hash of the source code that a stage runs, by which the workflow notices that results are out of date."""

import ast
import hashlib
from functools import cache
from pathlib import Path

import specialized_heads
from specialized_heads.stage import file_hash

PACKAGE = Path(specialized_heads.__file__).parent
# Results depend on the configuration through the settings of their stages alone: an edit of the modules that define its keys
# changes nothing.
CONFIGURATION = [PACKAGE / "experiment" / name for name in ("configuration.py", "sections.py")]


def files_of(module: str) -> list[Path]:
    """The source files that a module (`pruning.prune`) consists of, found by following its imports."""
    found: set[Path] = set()
    waiting = [f"{PACKAGE.name}.{module}"]
    while waiting:
        path = PACKAGE.joinpath(*waiting.pop().split(".")[1:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file not in found and file not in CONFIGURATION and file.exists():
            found.add(file)
            waiting += _imports(file)
    if not found:
        raise ValueError(f"there is no module {module}")
    return sorted(found)


@cache
def _imports(file: Path) -> list[str]:
    """The modules of the package that a source file may import."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return [
        name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE.name
        for name in (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))
    ]


@cache
def code(*modules: str, data: tuple[str, ...] = ()) -> str:
    """SHA-256 of the names and contents of all source files of a stage's modules, such as `pruning.prune`.

    `data`: names of other files that it reads, beside the first module.
    """
    files = {file for module in modules for file in files_of(module)}
    files |= {PACKAGE.joinpath(*modules[0].split(".")[:-1], name) for name in data}
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(f"{file.relative_to(PACKAGE).as_posix()} {file_hash(file)}\n".encode())
    return total.hexdigest()
