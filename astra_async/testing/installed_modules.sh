# What an image holds beside a project, by language, one name (in Java a package and its types) a line; see
# installed_modules.py. Runs in a container of the image, in the empty folder of a project.
mkdir -p astra-installed
for python in python3 python; do
  command -v $python >/dev/null && $python - >astra-installed/python <<'PYTHON' && break
import sys
# What is loaded before the path holds the project's folders cannot be replaced from there.
loaded = {name.partition(".")[0] for name in sys.modules}
import os, pkgutil
here = {"", os.getcwd()}
names = {each.name for each in pkgutil.iter_modules([each for each in sys.path if each not in here])}
names |= set(sys.builtin_module_names)
print("\n".join(sorted(names - (loaded - {"sitecustomize", "usercustomize"}))))
PYTHON
done
if command -v node >/dev/null; then
  roots=$(find / -maxdepth 4 '(' -path /proc -o -path /usr -o -path /opt/node ')' -prune -o \
    -type d -name node_modules -print -prune 2>/dev/null)
  for root in $roots ${NODE_PATH//:/ }; do
    (cd "$root" 2>/dev/null && ls -d -- * @*/* 2>/dev/null)
  done | sort -u >astra-installed/node
fi
command -v ruby >/dev/null && ruby - <<'RUBY' | sort -u >astra-installed/ruby
folders = $LOAD_PATH.map(&:to_s) + Gem::Specification.flat_map { |each| each.full_require_paths rescue [] }
folders.uniq.reject { |each| each == Dir.pwd }.each do |folder|
  Dir.glob("**/*.rb", base: folder) { |each| puts each.delete_suffix(".rb") } if File.directory?(folder)
end
RUBY
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
true
