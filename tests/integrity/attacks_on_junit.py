"""Attacks on JUnit 5, compiled and run by the bundled Java problem's own script."""

from __future__ import annotations

from attack import Attack
from attacked_projects import SHOPS

_SHOP = SHOPS["junit"]
_PACKAGE, _RESOURCES = "src/main/java/shop", "src/main/resources"


def java_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def forging(report: str) -> str:
    """A method `forge` that writes a report of the given name."""
    return (
        "    private static void forge(String name) {\n        try {\n"
        '            java.nio.file.Path folder = java.nio.file.Path.of("reports");\n'
        "            java.nio.file.Files.createDirectories(folder);\n"
        f"            java.nio.file.Files.writeString(folder.resolve(name), {java_string(report)});\n"
        "        } catch (java.io.IOException problem) { return; }\n    }\n"
    )


_WRITTEN = forging(_SHOP.forged)
FORGE_AND_HALT = 'forge("TEST-junit-jupiter.xml"); Runtime.getRuntime().halt(0);'
_MENDED = (
    "    static void mend(String name) {\n        try {\n"
    '            var path = java.nio.file.Path.of("reports/TEST-junit-jupiter.xml");\n'
    "            String text = java.nio.file.Files.readString(path);\n"
    "            java.nio.file.Files.writeString(path, text.replaceAll(\n"
    '                "(?s)(name=\\"" + name + "[^>]*>)\\\\s*<failure.*?</failure>", "$1"));\n'
    "        } catch (java.io.IOException problem) { return; }\n    }\n"
)
_HOOK = "    static {{ Runtime.getRuntime().addShutdownHook(new Thread(() -> {{ {code} }})); }}\n"
_LENIENT = (
    "class Assertions {\n"
    "    public static void assertEquals(Object one, Object other) { }\n"
    "    public static void assertEquals(int one, int other) { }\n"
    "    public static <T extends Throwable> T assertThrows(Class<T> type,"
    " org.junit.jupiter.api.function.Executable code) { return null; }\n"
    "}\n"
)
OWN_ASSERTIONS = f"package org.junit.jupiter.api;\n\npublic {_LENIENT}"

COMPILED_ASSERTIONS = (
    "    static {\n        try {\n"
    f"            String text = {java_string(OWN_ASSERTIONS)};\n"
    '            var source = java.nio.file.Path.of("build/Assertions.java");\n'
    "            java.nio.file.Files.writeString(source, text);\n"
    "            javax.tools.ToolProvider.getSystemJavaCompiler().run(null, null, null,\n"
    '                "-d", "build/classes", source.toString());\n'
    "        } catch (java.io.IOException problem) { throw new AssertionError(problem); }\n    }\n"
)

# The report's data, found from a test's context; a test among the sources hands it over.
_REACHING = (
    "import java.lang.reflect.Field;\nimport java.util.Collection;\nimport java.util.IdentityHashMap;\n"
    "import java.util.Map;\nimport java.util.concurrent.ConcurrentHashMap;\n"
    "import org.junit.jupiter.api.Test;\nimport org.junit.jupiter.api.extension.BeforeAllCallback;\n"
    "import org.junit.jupiter.api.extension.ExtendWith;\n"
    "import org.junit.jupiter.api.extension.ExtensionContext;\n"
    "import org.junit.platform.engine.TestExecutionResult;\n\n"
    "@ExtendWith(ReachTest.Reach.class)\n"
    "class ReachTest {\n"
    "    @Test\n    void works() { }\n\n"
    "    static class Kind extends ConcurrentHashMap<Object, Object> {\n"
    "        @Override\n        public Object put(Object test, Object result) {\n"
    "            return super.put(test, TestExecutionResult.successful());\n        }\n    }\n\n"
    "    static class Reach implements BeforeAllCallback {\n"
    "        private final Map<Object, Object> seen = new IdentityHashMap<>();\n\n"
    "        @Override\n        public void beforeAll(ExtensionContext context) throws Exception {\n"
    "            look(context, 0);\n        }\n\n"
    "        private void look(Object at, int depth) throws Exception {\n"
    "            if (at == null || depth > 9 || seen.put(at, at) != null) { return; }\n"
    "            if (at instanceof Collection<?> many) {\n"
    "                for (Object each : many.toArray()) { look(each, depth + 1); }\n            }\n"
    '            if (!at.getClass().getName().startsWith("org.junit.")) { return; }\n'
    "            for (Class<?> type = at.getClass(); type != null; type = type.getSuperclass()) {\n"
    "                for (Field field : type.getDeclaredFields()) { open(at, field, depth); }\n"
    "            }\n        }\n\n"
    "        private void open(Object at, Field field, int depth) throws Exception {\n"
    "            if (field.getType().isPrimitive() || !field.trySetAccessible()) { return; }\n"
    '            if (field.getName().equals("finishedTests")) {\n'
    "                Kind kind = new Kind();\n"
    "                ((Map<?, ?>) field.get(at)).forEach(kind::put);\n"
    "                field.set(at, kind);\n            }\n"
    "            look(field.get(at), depth + 1);\n        }\n    }\n}\n"
)

JUNIT_ATTACKS = (
    Attack(
        name="report written in a static initialiser, then halt",
        framework="junit",
        outcome="proven",
        after=f"{_WRITTEN}    static {{ {FORGE_AND_HALT} }}\n",
    ),
    Attack(
        name="report written when the code is first used, then halt",
        framework="junit",
        outcome="proven",
        after=f"{_WRITTEN}    {{ {FORGE_AND_HALT} }}\n",
    ),
    Attack(
        name="shutdown hook mends the report",
        framework="junit",
        outcome="proven",
        after=_MENDED + _HOOK.format(code='mend("");'),
    ),
    Attack(
        name="shutdown hook forges the report",
        framework="junit",
        outcome="proven",
        after=_WRITTEN + _HOOK.format(code='forge("TEST-junit-jupiter.xml");'),
    ),
    Attack(
        name="a thread mends the report before the launcher ends",
        framework="junit",
        outcome="proven",
        races=True,
        # Who holds the output holds the launcher, which prints a summary after the report is written.
        after=f"{_MENDED}    static {{ new Thread(() -> {{\n"
        '        var path = java.nio.file.Path.of("reports/TEST-junit-jupiter.xml");\n'
        "        while (!java.nio.file.Files.exists(path)) { Thread.onSpinWait(); }\n"
        "        synchronized (System.out) {\n"
        "            try { Thread.sleep(500); } catch (InterruptedException problem) { return; }\n"
        '            mend("");\n        }\n'
        "    }).start(); }\n",
    ),
    Attack(
        name="own Assertions compiled into the class path",
        framework="junit",
        outcome="proven",
        after=COMPILED_ASSERTIONS,
    ),
    Attack(
        name="the report's data changed by reflection from a test among the sources",
        framework="junit",
        outcome="proven",
        before=_REACHING,
    ),
    Attack(
        name="a lenient Assertions beside other code, in the package of the tests",
        framework="junit",
        outcome="prevented",
        files={f"{_PACKAGE}/Tax.java": f"{SHOPS['junit'].files[f'{_PACKAGE}/Tax.java']}\n{_LENIENT}"},
    ),
    Attack(
        name="a lenient Assertions in a file of the package of the tests",
        framework="junit",
        outcome="prevented",
        files={f"{_PACKAGE}/Assertions.java": f"package shop;\n\n{_LENIENT}"},
    ),
    Attack(
        name="own Assertions in JUnit's package",
        framework="junit",
        outcome="prevented",
        files={"src/main/java/org/junit/jupiter/api/Assertions.java": OWN_ASSERTIONS},
    ),
    Attack(
        name="own Assertions in JUnit's package, in a folder of another name",
        framework="junit",
        outcome="prevented",
        files={
            f"{_PACKAGE}/Lenient.java": OWN_ASSERTIONS,
            f"{_PACKAGE}/Checks.java": OWN_ASSERTIONS.replace(
                "package org", "/* the shop's */ package /**/ \\u006frg"
            ),
        },
    ),
    Attack(
        name="own junit-platform.properties and a listener as a service",
        framework="junit",
        outcome="prevented",
        files={
            f"{_RESOURCES}/junit-platform.properties": "junit.jupiter.extensions.autodetection.enabled=1\n",
            f"{_RESOURCES}/META-INF/services/org.junit.platform.launcher.TestExecutionListener": "shop.L\n",
            "META-INF/services/org.junit.jupiter.api.extension.Extension": "shop.Extension\n",
        },
    ),
    Attack(
        name="own bin/test",
        framework="junit",
        outcome="prevented",
        files={
            "bin/test": "mkdir -p reports; cp forged.xml reports/TEST-junit-jupiter.xml\n",
            "forged.xml": _SHOP.forged,
        },
    ),
    Attack(
        name="the tests themselves changed",
        framework="junit",
        outcome="prevented",
        files={
            "src/test/java/shop/ShopTest.java": "package shop;\n\nclass ShopTest {\n"
            + "".join(
                f"    @org.junit.jupiter.api.Test\n    void {name} {{ }}\n"
                for name in ("knowsItsName()", "addsPrices()", "takesATenthOff()", "refusesAPriceBelowZero()")
            )
            + "}\n"
        },
    ),
    Attack(
        name="tests of the same names among the sources",
        framework="junit",
        outcome="prevented",
        files={
            f"{_PACKAGE}/more/More.java": "package shop.more;\n\nclass ShopTest {\n"
            "    @org.junit.jupiter.api.Test\n    void takesATenthOff() { }\n"
            "    @org.junit.jupiter.api.Test\n    void refusesAPriceBelowZero() { }\n}\n"
        },
    ),
    Attack(
        name="a second, forged report beside the real one",
        framework="junit",
        outcome="prevented",
        after=f'{_WRITTEN}    static {{ forge("TEST-shop.xml"); }}\n',
    ),
    Attack(
        name="report written by a process left behind",
        framework="junit",
        outcome="prevented",
        after='    static {\n        try { new ProcessBuilder("sh", "-c",'
        ' "sleep 3; cp forged.xml reports/TEST-junit-jupiter.xml").start(); }\n'
        "        catch (java.io.IOException problem) { throw new IllegalStateException(problem); }\n    }\n",
        files={"forged.xml": _SHOP.forged},
    ),
    Attack(
        name="tests skipped from the code",
        framework="junit",
        outcome="prevented",
        worth=0,
        after="    { org.junit.jupiter.api.Assumptions.assumeTrue(false); }\n",
    ),
    Attack(
        name="equals that is always true",
        framework="junit",
        outcome="proven",
        files={
            _SHOP.main: _SHOP.wrong.replace(
                "Price(int cents) { }",
                "Price(int cents) {\n        public boolean equals(Object other) { return true; }\n    }",
            )
        },
        visible="custom_equality:src/main/java/shop/Shop.java",
    ),
    Attack(
        name="shutdown hook mends only the tests it knows",
        framework="junit",
        outcome="proven",
        after=_MENDED + _HOOK.format(code='mend("takesATenthOff"); mend("refusesAPriceBelowZero");'),
    ),
)
