#!/usr/bin/env bash
# `make demo`: a fresh cluster with the operator (not with DEMO=cli), fresh test servers on free ports, then demo.py against them.
# KEEP=1 leaves cluster and servers running.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
state=$root/.demo
target=${CARGO_TARGET_DIR:-$root/target}
testkit=$target/debug/testkit
python=$("$root/tests/tools/python-env.sh")
cluster=$state/cluster
image=native-transfer:demo
listen=127.0.0.1
ended=()
outcome=interrupted
# shellcheck source=demo/processes.sh
. "$root/demo/processes.sh"
umask 077

fail() {
  echo "demo: $*" >&2
  exit 1
}

# One demo per folder at a time. The lock is the folder's own; children do not inherit it.
exec 9<"$root/demo"
flock --nonblock 9 || fail "another demo is running in this folder; wait for it, or end it with Ctrl-C"

fresh_state() {
  # A link could lead the removal below elsewhere.
  [ ! -L "$state" ] || fail "$state is a symbolic link; remove it"
  if [ -d "$state" ]; then
    end_recorded
    # Its folder may hold mounts: it is not removed under a cluster that still runs.
    end_cluster || fail "end it first: make demo-down"
    [ ${#ended[@]} -eq 0 ] || echo "demo: ended what an earlier demo left: ${ended[*]}"
    # Another user's folder cannot be emptied, but it can be moved out of the way.
    rm -rf "$state" 2>/dev/null || mv "$state" "$state.$(date +%s)" ||
      fail "$state of another user is in the way; have it removed"
  fi
  mkdir "$state" || fail "this user cannot write to $root"
}

password() { echo "Demo-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"; }

start() { # NAME ARGUMENTS...
  local name=$1
  shift
  password >"$state/$name.password"
  # A session of its own: Ctrl-C must reach the transfer first, which settles while the servers still answer.
  setsid "$testkit" "$name" --listen "$listen:0" --san localhost --san 127.0.0.1 --san "$listen" \
    --data "$state/$name" --password-file "$state/$name.password" "$@" \
    >"$state/$name.ready" 2>"$state/$name.err" </dev/null 9<&- &
  local pid=$! tries
  record "$name" "$pid"
  disown "$pid"
  for ((tries = 0; tries < 600; tries++)); do
    [ ! -s "$state/$name.ready" ] || break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  [ -s "$state/$name.ready" ] || fail "testkit $name did not start: $(tail -n 3 "$state/$name.err")"
}

# A value of the line that `testkit cluster up` printed.
of_cluster() { # KEY
  "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$state/cluster.ready" "$1"
}

helm() {
  "$(of_cluster helm)" --kubeconfig "$(of_cluster kubeconfig)" --namespace native-transfer-system "$@" >"$state/helm.log" 2>&1 ||
    fail "helm $1: $(tail -n 3 "$state/helm.log")"
}

start_cluster() {
  echo "demo: bringing up a single-node Kubernetes in .demo/cluster"
  env -u KUBECONFIG "$testkit" cluster up --dir "$cluster" 9<&- >"$state/cluster.ready.new"
  mv "$state/cluster.ready.new" "$state/cluster.ready"
  listen=$(of_cluster host_address)
  echo "demo: building the image from a folder, loading it, installing both charts"
  "$testkit" image build --name "$image" --bin-dir "$target/debug" --output "$state/image.tar" >"$state/image.json"
  "$testkit" cluster load-image --dir "$cluster" "$state/image.tar" >/dev/null
  rm "$state/image.tar"
  helm upgrade --install native-transfer-crds "$root/charts/native-transfer-crds" --create-namespace
  helm upgrade --install native-transfer "$root/charts/native-transfer" --wait --timeout 3m \
    --set "image.repository=${image%%:*},image.tag=${image##*:},image.pullPolicy=Never"
}

finish() {
  local code=$?
  trap - EXIT
  # Half of a clean-up would be worse than none: it is not interrupted.
  trap '' INT TERM HUP
  if [ "${KEEP:-}" = 1 ] && [ "$outcome" != interrupted ]; then
    echo "demo: what was started is kept; \`set -a; . .demo/env; set +a\` names it, \`make demo-down\` ends it"
  else
    end_recorded
    end_cluster || true
    rm -f "$state/env"
    [ "$outcome" != interrupted ] || echo "demo: ended early; the servers are down, the next run starts afresh" >&2
  fi
  exit "$code"
}

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fresh_state
[ "${DEMO:-cluster}" = cli ] || start_cluster
start clickhouse --user demo --https-listen 127.0.0.1:0 --query-log "$state/clickhouse.queries"
start sqlserver --database demo --query-log "$state/sqlserver.queries"

arguments=(--state "$state" --native-transfer "$target/debug/native-transfer")
[ ! -f "$state/cluster.ready" ] || arguments+=(--cluster "$state/cluster.ready")
[ "${KEEP:-}" != 1 ] || arguments+=(--write-env)
# In the background, so that a signal is handled at once and not only when the client ends.
SSL_CERT_FILE=$state/sqlserver/tls/ca.pem PYTHONDONTWRITEBYTECODE=1 \
  "$python" "$root/demo/demo.py" "${arguments[@]}" </dev/null 9<&- &
client=$!
record demo "$client"
code=0
wait "$client" || code=$?
rm -f "$state/demo.pid"
outcome=ended
exit "$code"
