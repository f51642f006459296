#!/usr/bin/env bash
# `make demo-down`: ends the servers and the cluster that `KEEP=1 make demo` left running.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
state=$root/.demo
testkit=${CARGO_TARGET_DIR:-$root/target}/debug/testkit
ended=()
# shellcheck source=demo/processes.sh
. "$root/demo/processes.sh"

if [ -d "$state" ]; then
  end_recorded
  end_cluster
fi
rm -f "$state/env"
if [ ${#ended[@]} -eq 0 ]; then
  echo "demo: nothing was running"
else
  echo "demo: ended ${ended[*]}"
fi
