# $FOLDER holds the pom.xml, $JUNIT the generation of JUnit that it names (4, 5 or testng).
cd "$FOLDER" || exit
home=$(getent passwd 1000 | cut -d: -f6)
repository=$home/.m2/repository
mkdir -p "$repository" /tmp/astra-install/ca

# Java has a store of its own: the host's further authorities join it for this installation.
trust=
if [ -n "${SSL_CERT_FILE-}" ]; then
  trust=/tmp/astra-install/trust
  cp /etc/ssl/certs/java/cacerts "$trust"
  awk 'BEGIN { RS = "-----END CERTIFICATE-----" }
    { sub(/.*-----BEGIN CERTIFICATE-----/, ""); key = $0; gsub(/[[:space:]]/, "", key) }
    FNR == NR { seen[key]; next }
    key != "" && !(key in seen) {
      file = "/tmp/astra-install/ca/" ++count ".pem"
      print "-----BEGIN CERTIFICATE-----" $0 "-----END CERTIFICATE-----" >file; close(file)
    }' /etc/ssl/certs/ca-certificates.crt "$SSL_CERT_FILE"
  for file in /tmp/astra-install/ca/*.pem; do
    [ -f "$file" ] && keytool -importcert -noprompt -storepass changeit -keystore "$trust" -file "$file" \
      -alias "$file" >/dev/null 2>&1
  done
  trust="-Djavax.net.ssl.trustStore=$trust"
fi
proxy=${https_proxy:-${HTTPS_PROXY-}}
if [ -n "$proxy" ]; then
  at=${proxy#*://} && at=${at%%/*} && at=${at##*@}
  trust="$trust -Dhttps.proxyHost=${at%:*} -Dhttps.proxyPort=${at##*:} -Dhttp.proxyHost=${at%:*} -Dhttp.proxyPort=${at##*:}"
fi

# Surefire fetches what runs the tests only when there is one. A class and a test of our own stand in for the
# project's sources, in every module that has sources of its own.
for pom in $(find . -name pom.xml -not -path '*/target/*'); do
  grep -q '<packaging>pom</packaging>' "$pom" && continue
  folder=${pom%/pom.xml}
  mkdir -p "$folder/src/main/java/astra" "$folder/src/test/java/astra"
  echo 'package astra; public class Warm { public static void main(String[] words) { } }' >"$folder/src/main/java/astra/Warm.java"
  case $JUNIT in
    5) annotation=org.junit.jupiter.api.Test ;;
    testng) annotation=org.testng.annotations.Test ;;
    *) annotation=org.junit.Test ;;
  esac
  echo "package astra; public class WarmTest { @$annotation public void runs() { } }" >"$folder/src/test/java/astra/WarmTest.java"
done

# shellcheck disable=SC2086 - several options
maven() { attempt mvn -B -ntp $trust -Dmaven.repo.local="$repository" -Dstyle.color=never "$@"; }
from_debian() {
  note 'Maven Central cannot be reached: Debian has these libraries, in its own versions'
  packages libsurefire-java libmaven-compiler-plugin-java libmaven-resources-plugin-java libmaven-jar-plugin-java \
    libmaven-install-plugin-java libmaven-clean-plugin-java libmaven-dependency-plugin-java \
    libmaven-assembly-plugin-java libmaven-shade-plugin-java junit4 junit5 libmockito-java libassertj-core-java \
    libhamcrest-java libgoogle-gson-java libjackson2-databind-java libcommons-lang3-java libguava-java || return 1
  rm -rf "$repository"
  cp -rL /usr/share/maven-repo "$repository"
  for _ in $(seq 60); do
    maven -o clean install && return 0
    missing=$(grep -oE '[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+){2,4}' "$log" | sort -u)
    found=
    for each in $missing; do alias_of "$each" && found=yes; done
    [ -n "$found" ] || return 1
  done
  return 1
}
# GROUP:ARTIFACT[:TYPE]:VERSION under the version that is asked for, from the one that Debian has.
alias_of() {
  local group artifact version folder have file
  IFS=: read -r group artifact version _ <<<"$1"
  case $version in jar | pom | war | maven-plugin | test-jar | ejb) version=${1##*:} ;; esac
  case $version in compile | test | runtime | provided | '') return 1 ;; esac
  folder=$repository/${group//.//}/$artifact
  [ -d "$folder" ] && [ ! -e "$folder/$version" ] || return 1
  # Debian also files each library as `debian` and as `4.x`; a number says more.
  have=$(find "$folder" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort -V | tee "$log.all" |
    grep -E '^[0-9][0-9.]*[0-9]$' | tail -n 1)
  have=${have:-$(tail -n 1 "$log.all")}
  [ -n "$have" ] || return 1
  note "$group:$artifact $version: took Debian's $have"
  cp -r "$folder/$have" "$folder/$version"
  for file in "$folder/$version/$artifact-$have".*; do
    mv "$file" "$folder/$version/$artifact-$version.${file##*.}"
  done
  sed -i "0,/<version>$have</s//<version>$version</" "$folder/$version/$artifact-$version.pom"
  # A plugin's archive tells its version too.
  (
    cd /tmp/astra-install && rm -rf META-INF && jar xf "$folder/$version/$artifact-$version.jar" META-INF/maven/plugin.xml
    [ -f META-INF/maven/plugin.xml ] || exit 0
    sed -i "0,/<version>[^<]*</s//<version>$version</" META-INF/maven/plugin.xml
    jar uf "$folder/$version/$artifact-$version.jar" META-INF/maven/plugin.xml
  ) 2>/dev/null
  return 0
}

maven clean install || {
  if said 'Unknown host|Connection refused|timed out|Connect to|Could not transfer|PKIX'; then
    from_debian || {
      echo "error: Maven Central cannot be reached, and Debian has not all that the pom.xml names;" \
        "name an image that has it in the column image (or --image)"
      exit 1
    }
  else
    # The class of our own may be no such application as the package step wants; the tests' needs are there.
    maven -fae dependency:go-offline
    maven clean test || exit 1
  fi
}
find . -name target -type d -prune -exec rm -rf {} +
find . -path '*/java/astra' -type d -prune -exec rm -rf {} +
# What our own class was installed as must not stand in for the project's modules.
find "$repository" -name maven-metadata-local.xml -printf '%h\0' | xargs -r0 rm -rf --
find "$repository" '(' -name _remote.repositories -o -name '*.lastUpdated' ')' -delete
echo '<settings><offline>true</offline></settings>' >"$home/.m2/settings.xml"
chown -R 1000:1000 "$home/.m2"
