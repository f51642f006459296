#!/usr/bin/env bash
# Installs what a fresh Debian or Ubuntu machine lacks for building, testing and the demo. Says first what it will do.
# Nothing is installed when everything is there; running it twice is harmless.
set -euo pipefail

declare -A packages=(
  [cc]=build-essential [make]=make [pkg-config]=pkg-config [cmake]=cmake [git]=git [curl]=curl
  [python3]=python3 [node]=nodejs [npm]=npm [go]=golang-go [tsql]=freetds-bin [openssl]=openssl
)
missing=()
for command in "${!packages[@]}"; do
  command -v "$command" >/dev/null 2>&1 || missing+=("${packages[$command]}")
done
[ -e /usr/include/openssl/ssl.h ] || missing+=(libssl-dev)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
  echo "native-transfer needs these Debian packages and installs them now: ${missing[*]}"
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "run as root, or install them yourself: apt-get install ${missing[*]}" >&2; exit 1; }
    sudo=sudo
  fi
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if ! command -v cargo >/dev/null 2>&1 && [ -x "$HOME/.cargo/bin/cargo" ]; then
  echo "cargo is installed but not on PATH: add \$HOME/.cargo/bin to PATH" >&2
  exit 1
fi
if ! command -v cargo >/dev/null 2>&1; then
  echo "native-transfer needs Rust 1.95 or later and installs it with the rustup package now"
  ${sudo:-} apt-get install -y -qq rustup >/dev/null 2>&1 || {
    echo "this release has no rustup package: install Rust 1.95 or later from rustup.rs, then run this again" >&2
    exit 1
  }
  rustup default stable
fi
need=1.95
have=$(cargo --version | awk '{print $2}')
if [ "$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -n 1)" != "$need" ]; then
  echo "native-transfer needs Rust $need or later, found $have: rustup update stable" >&2
  exit 1
fi
