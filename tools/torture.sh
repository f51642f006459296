#!/usr/bin/env bash
# `make torture`: the long form of what `make test` runs shortly. Every seed is printed.
#   FUZZ_SECONDS   time of each property target of the native reader (default 600)
#   NT_FUZZ_SEED, ORACLE_SEED   repeat a run
# `tools/torture.sh planted` proves instead that each target finds a bound that is missing (tests/planted) within 60 s.
# Only what is committed is looked at.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
planted_seconds=60

build() { # prints the path of the reader's unit tests, built from the present folder
  cargo test --locked -p source-clickhouse --lib --no-run --message-format json |
    sed -n 's/.*"name":"source_clickhouse".*"executable":"\([^"]*\)".*/\1/p'
}

targets() { "$1" --list --format terse wire::tests::properties:: | sed 's/: test$//'; }

run() { # run TESTS TARGET SECONDS
  NT_FUZZ_SECONDS=$3 "$1" --exact "$2" --nocapture --test-threads 1
}

planted() {
  local tests tree log target missed=0
  tree=$(mktemp -d)
  log=$(mktemp)
  # shellcheck disable=SC2064  # the paths of now
  trap "git worktree remove --force '$tree'; rm -f '$log'" EXIT
  git worktree add --quiet --detach "$tree" HEAD
  cd "$tree"
  # Cargo would take a build of this tree for one of ours, defect and all.
  export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/planted
  tests=$(build)
  for target in $(targets "$tests"); do
    grep -qx "$target" tests/planted/*.patch || { echo "no defect is planted for $target"; missed=1; }
  done
  for patch in tests/planted/*.patch; do
    target=$(head -n 1 "$patch")
    git apply "$patch"
    tests=$(build)
    local start=$SECONDS code=0
    targets "$tests" | grep -qx "$target" || { echo "$patch names no target"; missed=1; }
    # Beyond the time of the target nothing counts as found.
    NT_FUZZ_SECONDS=$planted_seconds timeout "$planted_seconds" \
      "$tests" --exact "$target" --nocapture --test-threads 1 >"$log" 2>&1 || code=$?
    if [ "$code" = 0 ] || [ "$code" = 124 ]; then
      echo "MISSED  $patch by $target"
      missed=1
    else
      echo "found   $patch in $((SECONDS - start)) s: $(grep -m 1 -o 'NT_FUZZ_SEED=[0-9]*' "$log")"
    fi
    git apply --reverse "$patch"
  done
  cd "$root"
  return "$missed"
}

if [ "${1:-}" = planted ]; then
  planted
  exit
fi
tests=$(build)
for target in $(targets "$tests"); do
  run "$tests" "$target" "${FUZZ_SECONDS:-600}"
done
export ORACLE_TABLES=${ORACLE_TABLES:-200} ORACLE_SCAN_BYTES=${ORACLE_SCAN_BYTES:-10000000000}
export ORACLE_SEED=${ORACLE_SEED:-$RANDOM$RANDOM}
echo "ORACLE_SEED=$ORACLE_SEED"
cargo test --locked -p cli --test it -- oracle:: --nocapture --test-threads 1
