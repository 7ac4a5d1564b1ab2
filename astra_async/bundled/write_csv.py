"""Writes `problems.csv` from the folders of the bundled problems: `python -m astra_async.bundled.write_csv`.

The folders are what people edit; the CSV is what the program reads, the same way it reads a user's own.
A test fails when the two disagree. Keys of a `problem.toml`: `name`, `family`, `main_skill`,
`sub_skills`, `image_set`, and `tests`, the expected names in the order in which they are reported.
"""

from __future__ import annotations

import csv
import io
import json

from astra_async.bundled import bundled_problems_csv, describe, problem_ids, read_statement

COLUMNS = (
    "id",
    "name",
    "main_skill",
    "sub_skills",
    "problem_statement",
    "project",
    "reference",
    "image",
    "tests",
)
IMAGE_SET_PREFIX = "astra-set:"  # an image that is built here, by the name of its set


def problems_table() -> str:
    """The text of `problems.csv`: one row for each problem, sorted by id, lists as JSON."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_row(problem_id) for problem_id in problem_ids())
    return text.getvalue()


def _row(problem_id: str) -> dict[str, str]:
    description = describe(problem_id)
    return {
        "id": problem_id,
        "name": description["name"],
        "main_skill": description["main_skill"],
        "sub_skills": json.dumps(description["sub_skills"]),
        "problem_statement": read_statement(problem_id),
        "project": f"problems/{problem_id}/project",
        "reference": f"problems/{problem_id}/reference",
        "image": IMAGE_SET_PREFIX + description["image_set"],
        "tests": json.dumps(description["tests"], ensure_ascii=False),
    }


if __name__ == "__main__":
    bundled_problems_csv().write_text(problems_table(), encoding="utf-8", newline="")
