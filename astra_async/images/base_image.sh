#!/usr/bin/env bash
# Makes the root file system of a minimal Debian as a tar archive, where no registry can be reached.
# Usage: base_image.sh OUTPUT.tar [SUITE] [MIRROR]      (as root; needs debootstrap)
set -euo pipefail

output=${1:?usage: base_image.sh OUTPUT.tar [SUITE] [MIRROR]}
suite=${2:-bookworm}
mirror=${3:-${ASTRA_DEBIAN_MIRROR:-http://deb.debian.org/debian}}

command -v debootstrap >/dev/null || {
  echo "debootstrap is not installed; as root: apt-get install -y debootstrap" >&2
  exit 1
}
[ "$(id -u)" = 0 ] || {
  echo "debootstrap needs root: run this as root, or name a base image in ASTRA_BASE_IMAGE" >&2
  exit 1
}

root=$(mktemp -d)
trap 'rm -rf -- "$root"' EXIT
chmod 755 "$root"

debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror"
if [ "$suite" != sid ]; then
  printf 'deb %s %s main\ndeb %s %s-updates main\ndeb %s %s-security main\n' \
    "$mirror" "$suite" "$mirror" "$suite" "${mirror%/debian}/debian-security" "$suite" \
    >"$root/etc/apt/sources.list"
fi

# Nothing of this host stays in it, and nothing that can be fetched again.
rm -rf "$root"/etc/{resolv.conf,hostname,machine-id} "$root"/var/cache/apt/*.bin \
  "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*
find "$root/usr/share/doc" -type f ! -name copyright -delete
rm -rf "$root"/usr/share/{man,info,locale}/*
# Later packages bring no manuals or translations either, and start no services.
printf '%s\n' 'path-exclude /usr/share/doc/*' 'path-include /usr/share/doc/*/copyright' \
  'path-exclude /usr/share/man/*' 'path-exclude /usr/share/info/*' 'path-exclude /usr/share/locale/*' \
  >"$root/etc/dpkg/dpkg.cfg.d/astra"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

tar -C "$root" --numeric-owner -cf "$output" .
