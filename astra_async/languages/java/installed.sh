# The top-level types of all libraries and of the platform: a package and its types on each line.
if command -v javac >/dev/null; then
  cat >astra-installed/Types.java <<'JAVA'
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
        if (!name.matches("\\w+")) return;
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
JAVA
  java -XX:TieredStopAtLevel=1 astra-installed/Types.java /usr/share/java /usr/share/maven-repo "$HOME/.m2" \
    /root/.m2 /home /opt /projects "${JUNIT_JARS:-/opt}" >astra-installed/java
fi
