#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Installs what building (and with --test, testing) quern needs. Debian 12 and 13; Ubuntu 24.04 has the same package names
# (untried). Root, or sudo for the packages. Does nothing when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache python3 libfmt-dev libxxhash-dev nlohmann-json3-dev libcli11-dev
          libboost-context-dev binutils python3-venv ca-certificates)
[ "${1:-}" = --test ] && packages+=(clang libgtest-dev libgmock-dev libbenchmark-dev)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "quern needs the packages: ${missing[*]}; run as root or install sudo" >&2; exit 3; }
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
