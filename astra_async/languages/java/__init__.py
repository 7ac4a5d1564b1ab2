"""Java, and near enough Kotlin, Groovy and Scala."""

from __future__ import annotations

import re

from astra_async.languages.java.image import find_java
from astra_async.languages.language import Images, Language

JAVA = Language(
    name="java",
    suffixes=frozenset({"java", "kt", "kts", "groovy", "scala"}),
    images=Images(
        find=find_java,
        calls=re.compile(r"(?<![\w.-])(?:mvnw?|javac?|gradlew?)(?![\w-])"),
        signs=("pom.xml",),
    ),
)
