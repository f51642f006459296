#!/usr/bin/env bash
# Installs what a fresh Debian or Ubuntu machine lacks for building, testing and the demo. Says first what it will do.
# Nothing is installed when everything is there; running it twice is harmless.
#   CARGO_HOME, RUSTUP_HOME               where Rust is and goes to (default ~/.cargo, ~/.rustup)
#   RUSTUP_UPDATE_ROOT, RUSTUP_DIST_SERVER  mirrors of rustup and of the toolchains, https: or file:
#   NT_CACHE                              where a newer Go goes to (default ~/.cache/native-transfer)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rust_needed=1.95
rust_version=1.95.0 # installed where there is none or an older one: what the lints and tests were last run with
go_needed=1.26
go_version=1.26.8 # installed where the machine's own is older
cache=${NT_CACHE:-$HOME/.cache/native-transfer}
cargo_bin=${CARGO_HOME:-$HOME/.cargo}/bin
# The Makefile puts the same folders in front.
PATH=$cargo_bin:$cache/go/bin:$PATH

fail() {
  echo "setup: $*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Whether version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif has sudo; then
    sudo "$@"
  else
    fail "run as root, or run yourself: $*"
  fi
}

apt_updated=no
apt_update() {
  [ "$apt_updated" = yes ] || as_root apt-get update -qq
  apt_updated=yes
}

apt_install() {
  apt_update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Whether this release has the package.
apt_has() {
  apt_update
  [ -n "$(apt-cache policy "$1" | awk '$1 == "Candidate:" && $2 != "(none)"')" ]
}

debian_packages() {
  local -A packages=(
    [cc]=build-essential [make]=make [pkg-config]=pkg-config [cmake]=cmake [git]=git [curl]=curl
    [python3]=python3 [npm]=npm [go]=golang-go [tsql]=freetds-bin [openssl]=openssl
  )
  local missing=() command
  for command in "${!packages[@]}"; do
    has "$command" || missing+=("${packages[$command]}")
  done
  [ -e /usr/include/openssl/ssl.h ] || missing+=(libssl-dev)
  [ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
  { has python3 && python3 -c 'import venv, ensurepip' 2>/dev/null; } || missing+=(python3-venv)
  # ZooKeeper for the replicated tables of the tests: the library and a Java for it, no service.
  has java || missing+=(default-jre-headless)
  [ -e /usr/share/java/zookeeper.jar ] || missing+=(libzookeeper-java)
  [ ${#missing[@]} -eq 0 ] && return
  echo "native-transfer needs these Debian packages and installs them now: ${missing[*]}"
  apt_install "${missing[@]}"
}

# The version of the Rust that a build here would use; nothing where there is none.
rust_found() {
  has cargo || return 0
  # A proxy of rustup without a toolchain fails.
  { cargo --version 2>/dev/null || true; } | awk '{print $2}'
}

# Fetches rustup-init from $1 into the folder $2 and proves it by the SHA-256 that stands beside it.
fetch_rustup_init() {
  local address=$1 folder=$2 expected
  local fetch=(curl --proto '=https,file' --tlsv1.2 --fail --silent --show-error --location --retry 3)
  "${fetch[@]}" --output "$folder/rustup-init" "$address" || fail "rustup-init cannot be fetched from $address"
  "${fetch[@]}" --output "$folder/rustup-init.sha256" "$address.sha256" || fail "$address.sha256 cannot be fetched"
  # The file is a digest, alone or followed by a file name.
  read -r expected _ <"$folder/rustup-init.sha256" || [ -n "$expected" ] || fail "$address.sha256 is empty"
  [[ $expected =~ ^[0-9a-f]{64}$ ]] || fail "$address.sha256 holds no SHA-256"
  echo "$expected  $folder/rustup-init" | sha256sum --check --status || fail "rustup-init from $address has another SHA-256 than it should"
  chmod +x "$folder/rustup-init"
}

install_rustup() {
  local machine root scratch
  if apt_has rustup; then
    echo "native-transfer needs Rust $rust_needed or later and installs it with the Debian package rustup now"
    apt_install rustup
    return
  fi
  machine=$(uname -m)
  case $machine in
    x86_64 | aarch64) ;;
    *) fail "there is no known rustup for $machine: install Rust $rust_needed or later, then run this again" ;;
  esac
  root=${RUSTUP_UPDATE_ROOT:-${RUSTUP_DIST_SERVER:-https://static.rust-lang.org}/rustup}
  echo "native-transfer needs Rust $rust_needed or later and installs it in $cargo_bin with rustup-init from $root now"
  scratch=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf '$scratch'" EXIT
  fetch_rustup_init "$root/dist/$machine-unknown-linux-gnu/rustup-init" "$scratch"
  # A Rust of the distribution that is too old may stay: the Makefile puts cargo's folder in front of it.
  RUSTUP_INIT_SKIP_PATH_CHECK=yes "$scratch/rustup-init" -y --quiet --no-modify-path --profile minimal --default-toolchain none >/dev/null
  hash -r
}

rust() {
  local have
  have=$(rust_found)
  if [ -z "$have" ] || ! at_least "$have" "$rust_needed"; then
    has rustup || install_rustup
    echo "native-transfer needs Rust $rust_needed or later, found ${have:-none}: rustup installs $rust_version now"
    rustup toolchain install "$rust_version" --no-self-update --profile minimal --component clippy --component rustfmt
    # A machine without a default gets one; an existing choice is its owner's, and is set aside for this folder only.
    [ -n "$(rust_found)" ] || rustup default "$rust_version"
    have=$(rust_found)
    at_least "$have" "$rust_needed" || rustup override set "$rust_version"
    have=$(rust_found)
    at_least "$have" "$rust_needed" || fail "cargo is Rust $have still, $rust_needed or later is needed; is RUSTUP_TOOLCHAIN set?"
    echo "make uses Rust $have: $(command -v cargo)"
  fi
  # Distributions ship them apart.
  cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1 && return
  echo "native-transfer needs clippy and rustfmt and installs them now"
  has rustup || fail "install clippy and rustfmt beside $(command -v cargo), then run this again"
  rustup component add clippy rustfmt
}

go_version_found() { go env GOVERSION 2>/dev/null | sed 's/^go//'; }

# Debian 12 has Go 1.19, which knows nothing of newer toolchains; they come as a module, proved by Go's checksum database.
go_toolchain() {
  local have machine folder
  have=$(go_version_found)
  # From 1.21 on go fetches by itself the toolchain that a go.mod asks for.
  at_least "${have:-0}" 1.21 && return
  case $(uname -m) in
    x86_64) machine=amd64 ;;
    aarch64) machine=arm64 ;;
    *) fail "Go $go_needed or later is needed, found ${have:-none}" ;;
  esac
  echo "native-transfer needs Go $go_needed or later, found ${have:-none}: Go $go_version goes to $cache/go now"
  folder=$(cd / && GO111MODULE=on GOFLAGS=-mod=mod go mod download -json "golang.org/toolchain@v0.0.1-go$go_version.linux-$machine" |
    sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  [ -n "$folder" ] || fail "the Go toolchain cannot be fetched"
  mkdir -p "$cache"
  rm -rf "$cache/go" "$cache/go.new"
  cp -r "$folder" "$cache/go.new"
  chmod -R u+w "$cache/go.new"
  # Modules carry no modes.
  chmod +x "$cache/go.new/bin/"* "$cache/go.new/pkg/tool/"*/*
  mv "$cache/go.new" "$cache/go"
  hash -r
  at_least "$(go_version_found)" "$go_needed" || fail "the Go toolchain in $cache/go does not run"
}

debian_packages
rust
go_toolchain
