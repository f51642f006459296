#!/usr/bin/env bash
# Puts the ClickHouse engine (libchdb.so) into the cache and prints its path. Does nothing when it is already there.
#   NT_CACHE   cache folder (default ~/.cache/native-transfer)
set -euo pipefail

version=26.7.3
package=@chdb/lib-linux-x64-gnu@26.7.3-stable.1
sha256=36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5
folder=${NT_CACHE:-$HOME/.cache/native-transfer}/chdb-$version

if [ ! -f "$folder/verified" ]; then
    command -v npm >/dev/null || { echo "libchdb.sh: npm is needed to fetch $package" >&2; exit 1; }
    mkdir -p "$folder"
    # One fetch at a time; the second caller finds the work done.
    exec 9>"$folder/.lock"
    flock 9
    if [ ! -f "$folder/verified" ]; then
        scratch=$(mktemp -d "$folder/fetch.XXXXXX")
        trap 'rm -rf "$scratch"' EXIT
        (cd "$scratch" && npm pack --silent "$package" >archive-name)
        tar -xzf "$scratch/$(cat "$scratch/archive-name")" -C "$scratch" package/libchdb.so
        echo "$sha256  $scratch/package/libchdb.so" | sha256sum --check --quiet >&2
        mv "$scratch/package/libchdb.so" "$folder/libchdb.so"
        echo "$sha256" >"$folder/verified"
    fi
fi
echo "$folder/libchdb.so"
