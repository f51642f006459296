#!/usr/bin/env bash
# The first word of `make demo`: what it needs, installs and changes; it asks unless YES=1, and refuses where it cannot work.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

fail() {
  echo "demo: $*" >&2
  exit 1
}

case ${DEMO:-cluster} in
  cli) exit 0 ;; # the short form changes nothing but packages, which tools/setup.sh names itself
  cluster) ;;
  *) fail "DEMO is \`cluster\` (the default) or \`cli\`" ;;
esac

short="the short form needs no cluster: DEMO=cli make demo"
[ "$(uname -sm)" = "Linux x86_64" ] || fail "the cluster needs x86_64 Linux, this is $(uname -sm); $short"
[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || fail "the cluster needs root or sudo; $short"
command -v apt-get >/dev/null || fail "the cluster's packages come from Debian or Ubuntu (apt-get); $short"
[ -d /sys/fs/cgroup ] || fail "the cluster needs control groups in /sys/fs/cgroup; $short"
free_gb=$(df --output=avail --block-size=1G "$root" | tail -n 1 | tr -d ' ')
[ "$free_gb" -ge 12 ] || fail "the first demo needs 12 GB of disk, $free_gb GB are free in $root; $short"

cat <<'TEXT'
This demo runs native-transfer's operator in a real Kubernetes on this machine.
  needs      x86_64 Linux, root or sudo, 12 GB of disk, 4 GB of memory
  takes      about 30 minutes of building on 2 cores the first time, 5 minutes afterwards
  installs   Debian packages that are missing (compilers, containerd, runc, CNI plugins, conntrack, iptables, FreeTDS), Rust and Go if they are
             missing or old; binaries of Kubernetes, etcd, CoreDNS and Helm, built from Go modules, into ~/.cache/native-transfer
  changes    while it runs: a network namespace with its link, a control group, mounts below .demo/cluster; nothing of it is left afterwards
  leaves     the packages, the cache, and the folder .demo
  instead    DEMO=cli make demo moves the same rows by the command line, without a cluster
TEXT
[ "${YES:-}" = 1 ] && exit 0
[ -t 0 ] || fail "nobody can be asked here: YES=1 make demo goes on without asking"
read -r -p "Go on? [y/N] " answer
[[ $answer =~ ^[yY] ]] || fail "nothing was done"
