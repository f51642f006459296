#!/usr/bin/env bash
# Puts the second ClickHouse engine (26.9, a Python module without C functions) into the cache and prints its path. Does nothing
# when it is already there.
#   NT_CACHE   cache folder (default ~/.cache/native-transfer)
set -euo pipefail

version=26.9.0
package=chdb-core==$version
sha256=707e2ec3fe0f7953bac97942eaeb7a1ed1d66b1e56ecef3f0aa2130f61f6e735 # of the wheel
folder=${NT_CACHE:-$HOME/.cache/native-transfer}/chdb-core-$version

if [ ! -f "$folder/verified" ]; then
    python=$("$(dirname "${BASH_SOURCE[0]}")/python-env.sh")
    mkdir -p "$folder"
    # One fetch at a time; the second caller finds the work done.
    exec 9>"$folder/.lock"
    flock 9
    if [ ! -f "$folder/verified" ]; then
        scratch=$(mktemp -d "$folder/fetch.XXXXXX")
        trap 'rm -rf "$scratch"' EXIT
        # pip compares the wheel with the hash before it keeps it.
        echo "$package --hash=sha256:$sha256" >"$scratch/requirement"
        "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
            --requirement "$scratch/requirement" --dest "$scratch" >&2
        # Only the libraries: the Python code around them is not used, and neither is what it depends on.
        "$python" - "$scratch" <<'EXTRACT' >&2
import pathlib, sys, zipfile

scratch = pathlib.Path(sys.argv[1])
(wheel,) = scratch.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    libraries = [name for name in archive.namelist() if name.endswith(".so")]
    archive.extractall(scratch, libraries)
EXTRACT
        rm -rf "$folder/chdb" "$folder/chdb_core.libs"
        mv "$scratch/chdb" "$scratch/chdb_core.libs" "$folder"
        echo "$sha256" >"$folder/verified"
    fi
fi
echo "$folder/chdb/_chdb.abi3.so"
