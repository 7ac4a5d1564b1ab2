"""Python."""

from __future__ import annotations

import re

from astra_async.languages.language import Images, Language
from astra_async.languages.python.image import find_python, installs

PYTHON = Language(
    name="python",
    suffixes=frozenset({"py"}),
    images=Images(
        find=find_python,
        calls=re.compile(
            r"(?<![\w.-])(?:python[\d.]*|pip3?|pytest|py\.test|manage\.py|tox|nosetests)(?![\w-])"
        ),
        signs=("requirements.txt",),
        installs=installs,
        managers=("pip", "pip3"),
    ),
)
