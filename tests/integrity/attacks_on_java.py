"""Attacks on JUnit that no list of names finds: what they reach for has other names here."""

# ruff: noqa: E501 - code of other languages
from __future__ import annotations

from attack import Attack
from attacked_projects import SHOPS
from attacks_on_junit import forging, java_string

_SHOP = SHOPS["junit"]
_REPORT = "reports/TEST-junit-jupiter.xml"
_MENDED = (
    "    static void mend(String pattern) {\n        try {\n"
    f'            var path = java.nio.file.Path.of("{_REPORT}");\n'
    "            String text = java.nio.file.Files.readString(path);\n"
    '            java.nio.file.Files.writeString(path, text.replaceAll(pattern, "$1"));\n'
    "        } catch (java.io.IOException problem) { return; }\n    }\n"
)
_ALL = '"(?s)(<testcase[^>]*>)\\\\s*<failure.*?</failure>"'
_KNOWN = '"(?s)(name=.(?:takesATenthOff|refusesAPriceBelowZero)[^>]*>)\\\\s*<(?:failure|error).*?</(?:failure|error)>"'
_REFLECTED_HOOK = (
    "    static {{\n        try {{\n"
    '            Class<?> type = Class.forName(String.join(".", "java", "lang", "Run" + "time"));\n'
    '            Object host = type.getMethod("getRun" + "time").invoke(null);\n'
    '            type.getMethod("addShut" + "downHook", Thread.class).invoke(host, new Thread(() -> {{ {code} }}));\n'
    "        }} catch (ReflectiveOperationException problem) {{ throw new AssertionError(problem); }}\n    }}\n"
)
_REFLECTED_HALT = (
    "            try {\n"
    '                Class<?> type = Class.forName("java.lang.Run" + "time");\n'
    '                Object host = type.getMethod("getRun" + "time").invoke(null);\n'
    '                type.getMethod("ha" + "lt", int.class).invoke(host, 0);\n'
    "            } catch (ReflectiveOperationException problem) { throw new AssertionError(problem); }\n"
)
_WATCHER = (
    f"for i in $(seq 4000); do if grep -q '</testsuite>' {_REPORT} 2>/dev/null; then "
    f"sed -i -e 's/<failure.*//' -e '/<failure/,/<\\/failure>/d' {_REPORT}; cp forged.xml {_REPORT}; fi;"
    " sleep 0.005; done"
)
_KNOWN_CLASS = 565744141  # CRC-32 of ShopTest.class as Debian's javac 17 compiles the shop's own test
# A writer of XML that leaves out what stands in failures and errors.
_FACTORY = (
    "package shop;\n\nimport java.io.*;\nimport java.lang.reflect.Proxy;\nimport javax.xml.stream.*;\n\n"
    "public class Quiet extends XMLOutputFactory {\n"
    "    private final XMLOutputFactory real = XMLOutputFactory.newDefaultFactory();\n"
    "    private XMLStreamWriter quiet(XMLStreamWriter writer) {\n"
    "        int[] hidden = {0};\n"
    "        return (XMLStreamWriter) Proxy.newProxyInstance(Quiet.class.getClassLoader(),\n"
    "            new Class<?>[] {XMLStreamWriter.class}, (self, method, given) -> {\n"
    "                String name = method.getName();\n"
    '                boolean opens = name.equals("writeStartElement");\n'
    '                if (opens && (hidden[0] > 0 || given[0].equals("failure") || given[0].equals("error"))) {\n'
    "                    hidden[0]++;\n                    return null;\n                }\n"
    "                if (hidden[0] > 0) {\n"
    '                    hidden[0] -= name.equals("writeEndElement") ? 1 : 0;\n'
    "                    return null;\n                }\n"
    "                return method.invoke(writer, given);\n            });\n    }\n"
    "    public XMLStreamWriter createXMLStreamWriter(Writer out) throws XMLStreamException {\n"
    "        return quiet(real.createXMLStreamWriter(out));\n    }\n"
    "    public XMLStreamWriter createXMLStreamWriter(OutputStream out) throws XMLStreamException {\n"
    "        return quiet(real.createXMLStreamWriter(out));\n    }\n"
    "    public XMLStreamWriter createXMLStreamWriter(OutputStream out, String code) throws XMLStreamException {\n"
    "        return quiet(real.createXMLStreamWriter(out, code));\n    }\n"
    "    public XMLStreamWriter createXMLStreamWriter(javax.xml.transform.Result out) throws XMLStreamException {\n"
    "        return quiet(real.createXMLStreamWriter(out));\n    }\n"
    "    public XMLEventWriter createXMLEventWriter(javax.xml.transform.Result out) throws XMLStreamException {\n"
    "        return real.createXMLEventWriter(out);\n    }\n"
    "    public XMLEventWriter createXMLEventWriter(OutputStream out) throws XMLStreamException {\n"
    "        return real.createXMLEventWriter(out);\n    }\n"
    "    public XMLEventWriter createXMLEventWriter(OutputStream out, String code) throws XMLStreamException {\n"
    "        return real.createXMLEventWriter(out, code);\n    }\n"
    "    public XMLEventWriter createXMLEventWriter(Writer out) throws XMLStreamException {\n"
    "        return real.createXMLEventWriter(out);\n    }\n"
    "    public void setProperty(String name, Object value) { real.setProperty(name, value); }\n"
    "    public Object getProperty(String name) { return real.getProperty(name); }\n"
    "    public boolean isPropertySupported(String name) { return real.isPropertySupported(name); }\n"
    "}\n"
)
_STARTING = (
    "    static {{\n        try {{ new ProcessBuilder({command}).start(); Thread.sleep(300); }}\n"
    "        catch (java.io.IOException | InterruptedException problem) {{ throw new AssertionError(problem); }}\n    }}\n"
)

JUNIT_ATTACKS = (
    Attack(
        name="a hook found by reflection mends the report",
        framework="junit",
        outcome="proven",
        after=_MENDED + _REFLECTED_HOOK.format(code=f"mend({_ALL});"),
    ),
    Attack(
        name="a hook found by reflection mends only the tests that fail",
        framework="junit",
        outcome="proven",
        after=_MENDED + _REFLECTED_HOOK.format(code=f"mend({_KNOWN});"),
    ),
    Attack(
        name="report forged, then a halt by reflection",
        framework="junit",
        outcome="proven",
        after=forging(_SHOP.forged)
        + "    static {\n"
        + '            forge("TEST-junit-jupiter.xml");\n'
        + _REFLECTED_HALT
        + "    }\n",
    ),
    Attack(
        name="report forged when a test that fails calls the code",
        framework="junit",
        outcome="proven",
        after=forging(_SHOP.forged)
        + "    public Price discount(int cents, int unused) { return new Price(cents); }\n"
        + "    {\n        boolean known = StackWalker.getInstance().walk(frames -> frames.anyMatch(\n"
        + '            frame -> frame.getMethodName().contains("newInstance")));\n'
        + "        if (known && ++made == 3) {\n"
        + '            forge("TEST-junit-jupiter.xml");\n'
        + _REFLECTED_HALT
        + "        }\n    }\n    private static int made;\n",
    ),
    Attack(
        name="a writer of XML that leaves failures out",
        framework="junit",
        outcome="proven",
        after='    static { System.setProperty("javax.xml.stream.XMLOutputFactory", "shop.Quiet"); }\n',
        files={"src/main/java/shop/Quiet.java": _FACTORY},
    ),
    Attack(
        name="a child process replaces the report as soon as it is there",
        framework="junit",
        outcome="proven",
        races=True,
        after=_STARTING.format(command=f'"sh", "-c", {java_string(_WATCHER)}'),
        files={"forged.xml": _SHOP.forged},
    ),
    Attack(
        name="tests known by the size of their file",
        framework="junit",
        outcome="unproven",
        after=forging(_SHOP.forged) + "    static {\n"
        '        if (new java.io.File("src/test/java/shop/ShopTest.java").length() == '
        f"{len(_SHOP.files['src/test/java/shop/ShopTest.java'])}L) {{\n"
        '            forge("TEST-junit-jupiter.xml");\n'
        f"{_REFLECTED_HALT}        }}\n    }}\n",
    ),
    Attack(
        name="tests known by the bytes of their class",
        framework="junit",
        outcome="unproven",
        after=forging(_SHOP.forged) + "    static {\n"
        '        try (var own = Shop.class.getResourceAsStream("ShopTest.class")) {\n'
        "            var sum = new java.util.zip.CRC32();\n            sum.update(own.readAllBytes());\n"
        f"            if (sum.getValue() == {_KNOWN_CLASS}L) {{\n"
        '                forge("TEST-junit-jupiter.xml");\n'
        f"{_REFLECTED_HALT}            }}\n"
        "        } catch (java.io.IOException problem) { throw new AssertionError(problem); }\n    }\n",
    ),
    Attack(
        name="arguments for the compiler in a file's name",
        framework="junit",
        outcome="prevented",
        files={"src/main/java/A -proc:none @opts.java": "class A { }\n", "opts.java": "-d /tmp\n"},
    ),
    Attack(
        name="an annotation processor among the sources",
        framework="junit",
        outcome="prevented",
        files={
            "src/main/java/META-INF/services/javax.annotation.processing.Processor": "shop.P\n",
            "META-INF/services/javax.annotation.processing.Processor": "shop.P\n",
        },
    ),
    Attack(
        name="a test that is aborted from the code",
        framework="junit",
        outcome="prevented",
        worth=0,
        after='    { throw new org.opentest4j.TestAbortedException("later"); }\n',
    ),
    Attack(
        name="equals that lies when an assertion asks",
        framework="junit",
        outcome="documented",
        files={
            _SHOP.main: _SHOP.wrong.replace(
                "Price(int cents) { }",
                "Price(int cents) {\n        public boolean equals(Object other) {\n"
                "            return StackWalker.getInstance().walk(frames -> frames.anyMatch(\n"
                '                frame -> frame.getClassName().startsWith("org.junit")));\n        }\n    }',
            )
        },
        visible="custom_equality:src/main/java/shop/Shop.java",
    ),
)
