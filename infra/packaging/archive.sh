#!/usr/bin/env bash
# Makes dist/skua-<version>-linux-<arch>.tar.gz: what `npm pack` packs, Node.js, and bin/skua, which runs the one with the other.
#   infra/packaging/archive.sh [x64|arm64] [NODE]
# The machine's own architecture unless another is named. NODE is a folder with bin/node and LICENSE, as nodejs.org has them; without it the
# version that the project pins comes from the npm registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
arch=${1:-$(node -p process.arch)}
case $arch in x64 | arm64) ;; *) echo "error bad_arch: There is no archive for $arch: name x64 or arm64." >&2; exit 2 ;; esac
version=$(node -p "require('./package.json').version")
pinned=$(node -p "require('./package.json').devDependencies.node")
name=skua-$version-linux-$arch
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "dist/$name.tar.gz.tmp"' EXIT

from=${2:-$scratch/from}
if [ $# -lt 2 ]; then
  npm pack --silent --prefer-offline --pack-destination "$scratch" "node-linux-$arch@$pinned" >/dev/null
  mkdir "$from"
  tar -xzf "$scratch/node-linux-$arch-$pinned.tgz" -C "$from" --strip-components=1
fi

# Builds dist/.
npm pack --silent --pack-destination "$scratch" >/dev/null
mkdir -p "$scratch/$name/bin" "$scratch/$name/node/bin"
tar -xzf "$scratch/skua-$version.tgz" -C "$scratch/$name" --strip-components=1
cp -L "$from/bin/node" "$scratch/$name/node/bin/node"
cp "$from/LICENSE" "$scratch/$name/node/LICENSE"
cat >"$scratch/$name/bin/skua" <<'END'
#!/bin/sh
home=$(dirname "$(dirname "$(readlink -f "$0")")")
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
exec "$home/node/bin/node" --max-semi-space-size=16 --initial-old-space-size=64 "$home/dist/main.js" "$@"
END
chmod 755 "$scratch/$name/bin/skua" "$scratch/$name/node/bin/node"

# The same bytes from the same checkout; the time is that of all files in packages of npm.
tar -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner --mtime='1985-10-26 08:15:00Z' -czf "$PWD/dist/$name.tar.gz.tmp" "$name"
mv "dist/$name.tar.gz.tmp" "dist/$name.tar.gz"
du -h "dist/$name.tar.gz"
