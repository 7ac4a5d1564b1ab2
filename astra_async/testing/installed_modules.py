"""What an image holds beside a project: asked once in a container of it, and kept in the cache.

The overlay needs it to tell a file that takes the place of an installed module from one whose name only
sounds like it. The container holds nothing of the project and nothing of any answer.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.overlay import Installed, project_archive
from astra_async.running.log import write_atomically
from astra_async.types import Job, Project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from astra_async.problems.prepare import Prepared
    from astra_async.types import Limits, Sandbox

_VERSION = 1  # of what is asked; part of the cache's names
_LEAST_S = 120.0
_FOLDER = "astra-installed"
_MOST_NAMES = 400_000

# What is loaded before the path holds the project's folders cannot be replaced from there.
_PYTHON = """
import sys
loaded = {name.partition(".")[0] for name in sys.modules}
import os, pkgutil
here = {"", os.getcwd()}
names = {each.name for each in pkgutil.iter_modules([each for each in sys.path if each not in here])}
names |= set(sys.builtin_module_names)
print("\\n".join(sorted(names - (loaded - {"sitecustomize", "usercustomize"}))))
"""
_RUBY = """
folders = $LOAD_PATH.map(&:to_s) + Gem::Specification.flat_map { |each| each.full_require_paths rescue [] }
folders.uniq.reject { |each| each == Dir.pwd }.each do |folder|
  Dir.glob("**/*.rb", base: folder) { |each| puts each.delete_suffix(".rb") } if File.directory?(folder)
end
"""
_JAVA = """
import java.net.URI;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import java.util.zip.ZipFile;

class Types {
    static final Map<String, Set<String>> TYPES = new TreeMap<>();

    static void add(String path) {
        int slash = path.lastIndexOf('/');
        String name = path.substring(slash + 1).replace(".class", "");
        if (!path.endsWith(".class") || slash < 0 || path.startsWith("META-INF/")) return;
        if (!name.matches("\\\\w+")) return;
        TYPES.computeIfAbsent(path.substring(0, slash).replace('/', '.'), key -> new TreeSet<>()).add(name);
    }

    public static void main(String[] folders) throws Exception {
        Set<Path> seen = new HashSet<>();
        for (String folder : folders) {
            try (Stream<Path> found = Files.walk(Path.of(folder), 12, FileVisitOption.FOLLOW_LINKS)) {
                found.filter(each -> each.toString().endsWith(".jar")).forEach(each -> {
                    try {
                        if (!seen.add(each.toRealPath())) return;
                        try (ZipFile jar = new ZipFile(each.toFile())) {
                            jar.stream().forEach(entry -> add(entry.getName()));
                        }
                    } catch (java.io.IOException error) { }
                });
            } catch (java.io.IOException | java.io.UncheckedIOException error) { }
        }
        FileSystem platform = FileSystems.getFileSystem(URI.create("jrt:/"));
        try (Stream<Path> found = Files.walk(platform.getPath("/modules/java.base/java"))) {
            found.forEach(each -> add(each.toString().replace("/modules/java.base/", "")));
        }
        TYPES.forEach((key, names) -> System.out.println(key + " " + String.join(" ", names)));
    }
}
"""
_COMMAND = f"""
mkdir -p {_FOLDER}
for python in python3 python; do
  command -v $python >/dev/null && $python -c "$ASTRA_PYTHON" >{_FOLDER}/python && break
done
if command -v node >/dev/null; then
  roots=$(find / -maxdepth 4 '(' -path /proc -o -path /usr -o -path /opt/node ')' -prune -o \\
    -type d -name node_modules -print -prune 2>/dev/null)
  for root in $roots ${{NODE_PATH//:/ }}; do
    (cd "$root" 2>/dev/null && ls -d -- * @*/* 2>/dev/null)
  done | sort -u >{_FOLDER}/node
fi
command -v ruby >/dev/null && ruby -e "$ASTRA_RUBY" | sort -u >{_FOLDER}/ruby
if command -v javac >/dev/null; then
  echo "$ASTRA_JAVA" >{_FOLDER}/Types.java
  java -XX:TieredStopAtLevel=1 {_FOLDER}/Types.java /usr/share/java /usr/share/maven-repo "$HOME/.m2" \\
    /root/.m2 /home /opt /projects "${{JUNIT_JARS:-/opt}}" >{_FOLDER}/java
fi
true
"""


class InstalledModules:
    """Asks each image once, and keeps what it said in `cache`."""

    def __init__(self, cache: Path, sandbox: Sandbox, limits: Limits) -> None:
        self._cache = cache
        self._sandbox = sandbox
        self._limits = limits
        self._known: dict[str, Installed] = {}
        self._fitted: dict[tuple[str, str], Prepared] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def fitted(self, prepared: Prepared, image: str) -> Prepared:
        """The problem with rules that know its image. Raises SandboxError."""
        key = prepared.problem.id, image
        if key not in self._fitted:
            installed = await self.of(image)
            self._fitted[key] = replace(prepared, policy=prepared.policy.knowing(installed))
        return self._fitted[key]

    async def of(self, image: str) -> Installed:
        """What the image holds; unknown where nothing could be learned. Raises SandboxError."""
        async with self._locks.setdefault(image, asyncio.Lock()):
            if image not in self._known:
                image_id = await self._sandbox.image_id(image)
                digest = hashlib.sha256(f"{_VERSION}\0{image_id}\0{_COMMAND}".encode()).hexdigest()
                path = self._cache / f"installed-{digest}.json"
                said = await asyncio.to_thread(read_kept, path)
                if said is None:
                    said = await self._ask(image)
                    await asyncio.to_thread(_write, path, said)
                self._known[image] = _decoded(said)
            return self._known[image]

    async def _ask(self, image: str) -> dict[str, list[str]]:
        languages = ("python", "node", "ruby", "java")
        limits = replace(self._limits, timeout_s=max(self._limits.timeout_s, _LEAST_S))
        job = Job(
            image=image,
            archive=project_archive(Project(files=(), sha256=""), {}),
            command=_COMMAND,
            result_files=tuple(f"{_FOLDER}/{name}" for name in languages),
            environment={"ASTRA_PYTHON": _PYTHON, "ASTRA_RUBY": _RUBY, "ASTRA_JAVA": _JAVA},
            limits=limits,
            label="what the image holds",
        )
        reports = (await self._sandbox.run(job)).reports
        return {
            name: reports[f"{_FOLDER}/{name}"].decode(errors="replace").splitlines()[:_MOST_NAMES]
            for name in languages
            if reports.get(f"{_FOLDER}/{name}")
        }


def _decoded(said: Mapping[str, Any]) -> Installed:
    def names(language: str) -> frozenset[str] | None:
        lines: Iterable[str] | None = said.get(language)
        return None if lines is None else frozenset(lines)

    java = said.get("java")
    return Installed(
        python=names("python"),
        node=names("node"),
        ruby=names("ruby"),
        java=None
        if java is None
        else {words[0]: frozenset(words[1:]) for words in map(str.split, java) if words},
    )


def read_kept(path: Path) -> dict[str, Any] | None:
    """What was kept in a file; None where that is absent or damaged, and is to be learned again."""
    try:
        content = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _write(path: Path, said: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, orjson.dumps(said))
