#!/usr/bin/env bash
# `make demo-down`: ends the servers that `KEEP=1 make demo` left running.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
state=$root/.demo
ended=()
# shellcheck source=demo/processes.sh
. "$root/demo/processes.sh"

[ ! -d "$state" ] || end_recorded
rm -f "$state/env"
if [ ${#ended[@]} -eq 0 ]; then
  echo "demo: nothing was running"
else
  echo "demo: ended ${ended[*]}"
fi
