#!/usr/bin/env bash
# Runs the tests that talk to ClickHouse on the second engine (26.9): the source against the server, the server against foreign
# clients, the server as a process, and the oracle in a short form. All else does not depend on the engine's version.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
export NT_CLICKHOUSE_ENGINE=26.9
export ORACLE_TABLES=${ORACLE_TABLES:-10} ORACLE_SCAN_BYTES=${ORACLE_SCAN_BYTES:-50000000}
tests/tools/chdb-core.sh >/dev/null

binaries=$(mktemp)
trap 'rm -f "$binaries"' EXIT
# Folder and path of each package's tests, as they are built already.
cargo test --workspace --locked --test it --no-run --message-format json 2>/dev/null | python3 -c '
import json, os, sys

for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == "it":
        print(os.path.relpath(os.path.dirname(message["manifest_path"])), message["executable"])
' >"$binaries"

run() { # run FOLDER TESTS...
  local binary
  binary=$(awk -v folder="$1" '$1 == folder { print $2 }' "$binaries")
  [ -x "$binary" ] || { echo "second-engine.sh: $1 has no tests" >&2; exit 1; }
  echo "ClickHouse $NT_CLICKHOUSE_ENGINE: $1 ${*:2}"
  (cd "$1" && "$binary" "${@:2}")
}

run src/source-clickhouse
run tests/servers clickhouse::
run tests clickhouse::
run src/cli oracle::
