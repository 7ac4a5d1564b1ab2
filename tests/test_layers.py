"""Layers of the program, checked by the imports of every module; every package needs a layer."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent / "astra_async"
DESIGN = ROOT.parent / "docs" / "development" / "design.md"
ASYNC = {"asyncio", "aiohttp", "aiodocker", "aioboto3", "uvloop"}

# Layers from bottom to top. A module may import its own layer and lower ones. The longest prefix decides.
LAYERS = {
    "values": {"types", "usage", "errors", "files", "listing", "redaction", "surrogates", "transport"},
    "pure": {
        *(
            "config",
            "options",
            "model_options",
            "response_formats",
            "metrics",
            "stats",
            "report",
            "languages",
            "overlay",
            "answers",
            "problems",
        ),
        *("asking.prompt", "asking.judge_prompt", "asking.feedback", "asking.stable"),
        *("testing.reports", "testing.counting", "images.stacks", "fingerprint", "report_text", "bundled"),
        *("harbor.reward", "harbor.task", "harbor.task_files", "harbor.verified"),
    },
    "loop": {"tasks"},
    "edges": {"problems.fetch", "asking.providers", "asking.throttle", "testing.sandbox", "log"},
    "stages": {
        "prepare",
        "problems.collect",
        "problems.fetched_folder",
        "answers.lenient",
        "testing",
        "images",
        "simulate",
        "agents",
        "harbor",
    },
    "run": {"audit", "asking", "running", "export", "view", "cluster"},
    "top": {"cli", "from_python", "__main__", ""},
}
# Optional parts of a run. `running.agent_asking` runs agents.
OPTIONAL = (
    *("view.", "cluster.", "agents.", "asking.batches.", "simulate.", "export.", "audit."),
    *("running.agent_asking.", "harbor.container.", "harbor.trial.", "harbor.task_validation."),
)
# Settings are resolved with the providers' knowledge of models, without requests.
ALLOWED_UPWARD = {("model_options", "asking.providers")}


def modules() -> dict[str, Path]:
    bundled = ROOT / "bundled" / "problems"
    paths = (path for path in sorted(ROOT.rglob("*.py")) if not path.is_relative_to(bundled))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
        for path in paths
    }


MODULES = modules()


@cache
def package_of(module: str) -> str:
    """Return the package of a module in the layers: the longest matching prefix."""
    known = {name for names in LAYERS.values() for name in names}
    parts = module.split(".") if module else [""]
    found = [name for name in (".".join(parts[:end]) for end in range(len(parts), 0, -1)) if name in known]
    assert found, f"{module} belongs to no layer: place its package in LAYERS"
    return found[0]


def layer(module: str) -> int:
    place = package_of(module)
    return next(number for number, names in enumerate(LAYERS.values()) if place in names)


@cache
def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module.startswith("astra_async"):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own(path: Path) -> set[str]:
    """Return the modules of this program that a module imports."""
    names = {
        name.removeprefix("astra_async").lstrip(".")
        for name in imported(path)
        if name.split(".")[0] == "astra_async"
    }
    return {name for name in names if name in MODULES and name}


def test_a_module_imports_only_its_own_and_lower_layers() -> None:
    above = [
        (module, name)
        for module, path in MODULES.items()
        for name in own(path)
        if layer(name) > layer(module) and (package_of(module), package_of(name)) not in ALLOWED_UPWARD
    ]
    assert above == []


def test_values_and_pure_packages_import_no_event_loop_and_no_network() -> None:
    loop = list(LAYERS).index("loop")
    pure = {module: path for module, path in MODULES.items() if layer(module) < loop}
    assert [
        (m, name) for m, path in pure.items() for name in imported(path) if name.split(".")[0] in ASYNC
    ] == []


def test_edges_do_not_import_each_other() -> None:
    edges = {module: package_of(module) for module in MODULES if package_of(module) in LAYERS["edges"]}
    known = [(edge, package_of(name)) for module, edge in edges.items() for name in own(MODULES[module])]
    assert [(edge, other) for edge, other in known if other in LAYERS["edges"] - {edge}] == []


def at_the_top(path: Path, *, with_types: bool = True) -> set[str]:
    """Return the modules of this program that a module imports at import time or for types."""
    tree = ast.parse(path.read_text())
    blocks = [tree.body, *(node.body for node in tree.body if with_types and isinstance(node, ast.If))]
    names = {
        (f"{node.module}.{alias.name}", node.module)
        for block in blocks
        for node in block
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("astra_async.")
        for alias in node.names
    }
    known = {f"astra_async.{name}": name for name in MODULES}
    return {known[name if name in known else module] for name, module in names}


def test_optional_parts_are_imported_only_on_demand() -> None:
    """What a run is without its extras: nothing of them is read before it is asked for."""
    optional = {module for module in MODULES if f"{module}.".startswith(OPTIONAL)}
    eager = [
        (module, name)
        for module, path in MODULES.items()
        if module not in optional and not f"{module}.".startswith("cli.")
        for name in at_the_top(path, with_types=False) & optional
    ]
    assert eager == []


def test_modules_have_no_import_cycle() -> None:
    """Not even by its types: each can be read once those below it are known."""
    TopologicalSorter({module: at_the_top(path) for module, path in MODULES.items()}).prepare()


def test_packages_have_no_import_cycle() -> None:
    packages: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        package = module.partition(".")[0]
        packages.setdefault(package, set()).update(name.partition(".")[0] for name in own(path))
    for package, known in packages.items():
        known.discard(package)
    TopologicalSorter(packages).prepare()


def test_layers_name_only_packages_that_exist() -> None:
    known = {name for names in LAYERS.values() for name in names}
    assert not {name for name in known if name and not any(f"{m}.".startswith(f"{name}.") for m in MODULES)}


def test_every_exception_from_the_layers_is_used() -> None:
    used = {(package_of(module), package_of(name)) for module, path in MODULES.items() for name in own(path)}
    assert used >= ALLOWED_UPWARD


def test_the_drawing_in_the_documentation_matches_the_layers() -> None:
    drawn: dict[str, set[str]] = {}
    for line in re.findall(
        r"^    (.+)$",
        DESIGN.read_text().partition("## Packages and layers")[2].partition("## ")[0],
        re.MULTILINE,
    ):
        first, *packages = line.split()
        if not line.startswith(" "):
            drawn[first] = set()
        else:
            packages = [first, *packages]
        names = [name for place in packages for name in spelled_out(place)]
        drawn[list(drawn)[-1]] |= {name.replace("/", ".") for name in names}
    assert drawn == {name: packages - {""} for name, packages in LAYERS.items()}


def spelled_out(place: str) -> list[str]:
    """`a/{b,c}` as a/b and a/c."""
    before, brace, names = place.rstrip("}").partition("{")
    return [before + name for name in names.split(",")] if brace else [place]


def test_file_names_are_unique() -> None:
    """A language's files have the names of the questions that they answer, which are the same for each."""
    languages = ROOT / "languages"
    names = [
        path.name
        for path in MODULES.values()
        if path.name != "__init__.py" and path.parent.parent != languages
    ]
    assert len(names) == len(set(names))


def test_public_class_names_are_unique() -> None:
    classes = [
        node.name
        for path in MODULES.values()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(classes) == len(set(classes))
