"""Prompt for a problem: instructions, problem statement, project files.

The order of the three parts is that of the paper (section 3.2). The paper's wording is not available, because
figures 5 and 6 are images. The text below is a reconstruction; records contain its version and hash. As
in the paper, the JSON prompt has more formatting instructions, because of escaping. The module does not check
if the prompt fits into a model's context window.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from astra_async.overlay import path_policy
from astra_async.problems.patterns import PathPatterns
from astra_async.problems.sources import source_text
from astra_async.types import Prompt, is_agent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pathspec import GitIgnoreSpec

    from astra_async.overlay import PathPolicy
    from astra_async.problems.sources import SourceText
    from astra_async.types import Format, Problem, Project, ProjectFile

PROMPT_VERSIONS: Mapping[Format, str] = {"xml": "xml-1", "json": "json-1"}
AGENT_PROMPT_VERSION = "agent-1"

# Generated files: dependencies, version control, build output, caches.
GENERATED: tuple[str, ...] = (
    *("node_modules/", "bower_components/", "vendor/bundle/", ".git/", ".hg/", ".svn/", "venv/", ".venv/"),
    *("__pycache__/", "*.egg-info/", ".pytest_cache/", ".gradle/", ".mvn/", "/target/", "obj/", "/coverage/"),
    *(".nyc_output/", ".angular/", ".next/", ".nuxt/", "*.map", "*.min.js", "*.min.css", "*.log"),
)
PROMPT_LEAVES_OUT: tuple[str, ...] = (
    *GENERATED,
    # lock files
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "bun.lock"),
    *("Gemfile.lock", "Pipfile.lock", "poetry.lock", "uv.lock", "composer.lock", "packages.lock.json"),
    *("Cargo.lock", "go.sum"),
    # files of the platform and the test runner, reports
    *("hackerrank.yml", "hackerrank.yaml", "junit.xml", "unit.xml", "unit.tap", "TEST-*.xml"),
    *("TestResults.xml", "mvnw", "mvnw.cmd", "gradlew", "gradlew.bat"),
    # editors and operating systems
    *(".idea/", ".vscode/", ".vs/", ".settings/", ".project", ".classpath", "*.iml"),
    *(".DS_Store", "Thumbs.db"),
    # images, fonts, media, archives, compiled code, databases
    *("*.png", "*.jpg", "*.jpeg", "*.gif", "*.ico", "*.webp", "*.avif", "*.bmp", "*.svg", "*.pdf", "*.psd"),
    *("*.woff", "*.woff2", "*.ttf", "*.otf", "*.eot", "*.mp3", "*.mp4", "*.webm", "*.wav", "*.ogg"),
    *("*.zip", "*.tar", "*.gz", "*.tgz", "*.7z", "*.rar", "*.jar", "*.war", "*.class", "*.pyc", "*.dll"),
    *("*.exe", "*.so", "*.wasm", "*.sqlite", "*.sqlite3", "*.db"),
)

# Files with keys and passwords, which are never shown.
SECRETS: tuple[str, ...] = (
    *(".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.test", "*.pem", "*.key"),
    *("*.p12", "*.pfx", "id_rsa", "id_ed25519", ".netrc", ".pypirc", ".aws/", ".ssh/", "credentials.json"),
)
RULE_MAY_HOLD_KEYS = "may hold keys or passwords"
MAX_FILE_BYTES = 256 * 1024
RULE_TOO_LARGE = f"larger than {MAX_FILE_BYTES} bytes"
RULE_BINARY = "binary"

_INTRODUCTION = """\
# Question Instructions

You are an experienced software engineer. Below are a problem statement and the files of a project. Change \
the project so that it does what the problem statement asks. Your answer is applied to the project and \
checked by automated tests, some of which you may not see.

- Give every file that you change or add, each one whole, from its first to its last line. Never give a \
part of a file, a diff, or a remark such as "rest unchanged".
- Leave out files that do not change. Files cannot be deleted or renamed.
- Paths are relative to the project's root, exactly as they stand below, for example `src/app.js`.
- Files marked "do not change", other tests, and the configuration of the test runner and the build are put \
back before the tests run; changes to them are lost. Of package.json only `dependencies` and \
`devDependencies` are taken, and nothing can be installed beyond what the project already has.
- Keep names, routes, status codes, messages and identifiers exactly as the problem statement and the \
project give them.
"""

_FORMATS: Mapping[Format, str] = {
    "xml": """\

## Format of your answer

Answer with one XML element and nothing before or after it:

<solution>
<file path="relative/path/of/first.file"><![CDATA[
full content of the file
]]></file>
<file path="relative/path/of/second.file"><![CDATA[
full content of the file
]]></file>
</solution>

Write the content of a file as it is, without escaping, inside its CDATA section. Where a file's content \
itself holds `]]>`, write `]]]]><![CDATA[>` in its place. Use no markdown fence.
""",
    "json": """\

## Format of your answer

Answer with one JSON object in a single JSON code block and nothing before or after it. Its keys are the \
relative paths of the files, its values are their full contents, each one string:

```json
{
  "relative/path/of/first.file": "first line\\nsecond line\\n",
  "relative/path/of/second.file": "const text = \\"quoted\\";\\n\\tindented by a tab\\n"
}
```

The object must be valid JSON:

- Every value is one JSON string in double quotes: no list of lines, no nested object, no template literal \
in backticks, no concatenation.
- Write every line break inside a file's content as `\\n` and every tab as `\\t`; a string never spans \
several lines of your answer.
- Write every double quote inside a file's content as `\\"` and every backslash as `\\\\`. An escape \
sequence in the code itself is therefore doubled: the code `"a\\nb"` becomes \
`\\"a\\\\nb\\"`, the regular expression \
`/\\d+/` becomes `/\\\\d+/`.
- Escape each character once, not twice, and nothing else: single quotes, backticks, `$`, `/`, `<` and `&` \
stay as they are.
- No comments, no trailing commas, no key twice, and no other keys than paths.
""",
}

# Instructions for every agent, in addition to the agent's system prompt.
_AGENT_INTRODUCTION = """\
# Task

You work in a project, in the folder that you were started in. Change the project so that it does what the \
problem statement below asks. What you leave there is checked by automated tests, some of which you may \
not see.

- Nobody answers questions: decide for yourself, and end when the work is done.
- There is no network, and nothing can be installed beyond what is there. You may run the project's own \
tests; the command is: {command}
- Tests that are there and the configuration of the test runner and the build are put back before the tests \
run; changes to them are lost. Of package.json only `dependencies` and `devDependencies` are taken.
- Keep names, routes, status codes, messages and identifiers exactly as the problem statement and the \
project give them.
- You have {minutes:g} minutes, in which the time that your model takes to answer does not count. What the \
project holds when they are over is what is checked.
"""

_STATEMENT = "\n# Problem Statement\n\n"
_FILES = (
    "\n# Project Files\n\nEach file stands between two fences of backticks, under its path. A file ends with"
    " a line break unless its heading says otherwise.\n"
)
# Not part of the fingerprint, because it only occurs at files that version 1 of the prompts left out.
_SAVED_IN = " (saved in {}, your answer will be in UTF-8)"
_ANY_SAVED_IN = re.compile(re.escape(_SAVED_IN).replace(r"\{\}", r"(?:UTF-16|windows-1252)") + "$")
_PROTECTED = " (do not change)"
_NO_LINE_END = " (no line break at its end)"
_BACKTICKS = re.compile(r"`{3,}")
_RENDERED = re.compile(r"\n## (?P<path>.*)\n\n(?P<fence>`{3,})\n")


def build_prompt(
    problem: Problem,
    project: Project,
    fmt: Format,
    *,
    leave_out: Sequence[str] = PROMPT_LEAVES_OUT,
    policy: PathPolicy | None = None,
) -> Prompt:
    """Build the prompt, identical byte for byte for equal arguments.

    Hidden files, links, files that may contain keys, binary files and files over 256 KiB are never shown.
    `Prompt.left_out` lists every file that is left out, with the rule. Line ends are kept, and the heading of
    a file that is not UTF-8 gives its encoding. A file's fence has more backticks than any run of backticks
    in its content, so that no content can end it.

    Args:
        problem: the problem.
        project: the problem's project.
        fmt: format of the answer.
        leave_out: .gitignore patterns of more files to leave out.
        policy: result of `path_policy(problem, project)` if the caller has it already.
    """
    policy = policy or path_policy(problem, project)
    shown: list[str] = []
    left_out: list[tuple[str, str]] = []
    pieces = [_INTRODUCTION, _FORMATS[fmt], _STATEMENT, problem.statement.strip("\n"), "\n", _FILES]
    for file, source in _filtered_files(problem, project, leave_out):
        if isinstance(source, str):
            left_out.append((file.path, source))
            continue
        shown.append(file.path)
        pieces.append(_rendered(file.path, source, is_protected=policy.refusal(file.path) is not None))
    return _prompt(pieces, shown, left_out)


def build_agent_prompt(
    problem: Problem,
    project: Project,
    *,
    minutes: float,
    leave_out: Sequence[str] = PROMPT_LEAVES_OUT,
) -> Prompt:
    """Build the prompt for agents: instructions and statement. Agents find the files in their container.

    `minutes` is the agent's time limit. `files` and `left_out` are the same as in a prompt with files.
    """
    task = _AGENT_INTRODUCTION.format(command=problem.test_command, minutes=minutes)
    ruled = list(_filtered_files(problem, project, leave_out))
    shown = [file.path for file, source in ruled if not isinstance(source, str)]
    left_out = [(file.path, rule) for file, rule in ruled if isinstance(rule, str)]
    return _prompt([task, _STATEMENT, problem.statement.strip("\n"), "\n"], shown, left_out)


def shown_files(prompt: str) -> dict[str, str]:
    """Parse the project's files by path from a prompt that `build_prompt` made."""
    files: dict[str, str] = {}
    at = prompt.find(_FILES) + len(_FILES)
    while found := _RENDERED.match(prompt, at):
        fence = found["fence"]
        end = prompt.find(f"\n{fence}\n", found.end() - 1)  # the -1 also finds the end of an empty file
        heading, has_line_end = found["path"], not found["path"].endswith(_NO_LINE_END)
        content = prompt[found.end() : end + 1 if has_line_end else end]
        path = heading.removesuffix(_NO_LINE_END).removesuffix(_PROTECTED)
        files[_ANY_SAVED_IN.sub("", path)] = content
        at = end + len(fence) + 2
    return files


def prompt_fingerprint(fmt: Format, leave_out: Sequence[str] = PROMPT_LEAVES_OUT) -> str:
    """Return the version and a hash of everything that determines a prompt except problem and project."""
    version = AGENT_PROMPT_VERSION if is_agent(fmt) else PROMPT_VERSIONS[fmt]
    wording: tuple[str, ...] = (_AGENT_INTRODUCTION, _STATEMENT)
    if not is_agent(fmt):
        wording = (_INTRODUCTION, _FORMATS[fmt], _STATEMENT, _FILES, _PROTECTED, _NO_LINE_END)
    digest = hashlib.sha256()
    for part in (version, *wording, str(MAX_FILE_BYTES), *leave_out):
        digest.update(b"%d:%s" % (len(part.encode()), part.encode()))
    return f"{version}:{digest.hexdigest()[:16]}"


def _prompt(pieces: Iterable[str], shown: Iterable[str], left_out: Iterable[tuple[str, str]]) -> Prompt:
    text = "".join(pieces)
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    return Prompt(text=text, sha256=digest, files=tuple(shown), left_out=tuple(left_out))


@lru_cache(maxsize=8)
def _compiled(leave_out: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(leave_out)


def _filtered_files(
    problem: Problem, project: Project, leave_out: Sequence[str]
) -> Iterator[tuple[ProjectFile, SourceText | str]]:
    """Yield the files sorted by path, each with its text or the rule that leaves it out."""
    hidden, ignored = PathPatterns.of(problem.hidden_paths), _compiled(tuple(leave_out))
    for file in sorted(project.files, key=lambda each: each.path):
        checked = ignored.check_file(file.path)
        if hidden.matches(file.path):
            yield file, "hidden file"
        elif file.link is not None:
            yield file, "link"
        elif is_secret(file.path):
            yield file, RULE_MAY_HOLD_KEYS
        elif checked.include and checked.index is not None:
            yield file, str(ignored.patterns[checked.index].pattern)
        else:
            is_large = len(file.content) > MAX_FILE_BYTES
            yield file, RULE_TOO_LARGE if is_large else source_text(file.content) or RULE_BINARY


def is_secret(path: str) -> bool:
    """Return True for a file that usually contains keys or passwords. Models and agents must not see it."""
    return bool(_compiled(SECRETS).match_file(path))


def _rendered(path: str, source: SourceText, *, is_protected: bool) -> str:
    content = source.text
    longest = max((len(run) for run in _BACKTICKS.findall(content)), default=2)
    fence = "`" * (longest + 1)
    has_line_end = not content or content.endswith("\n")
    notes = _SAVED_IN.format(source.encoding) if source.encoding else ""
    notes += f"{_PROTECTED if is_protected else ''}{'' if has_line_end else _NO_LINE_END}"
    return f"\n## {path}{notes}\n\n{fence}\n{content}{'' if has_line_end else chr(10)}{fence}\n"
