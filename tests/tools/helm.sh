#!/usr/bin/env bash
# Builds helm from the module e2e/cluster/helm (its go.sum pins every byte) into the cache and prints its path. Does nothing
# when it is already there; `testkit cluster build` puts it to the same place.
#   NT_CACHE   cache folder (default ~/.cache/native-transfer)
set -euo pipefail

module=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../e2e/cluster/helm" && pwd)
cache=${NT_CACHE:-$HOME/.cache/native-transfer}
flags='-s -w'
# The key of tests/src/cluster/build.rs: flags, then name, length and content of each file.
key=$({
    printf '%s' "$flags"
    cd "$module"
    for file in go.mod go.sum; do
        printf '\n%s %s\n' "$file" "$(stat -c %s "$file")"
        cat "$file"
    done
} | sha256sum | cut -c1-16)
folder=$cache/cluster-helm-$key

if [ ! -x "$folder/helm" ]; then
    command -v go >/dev/null || { echo "helm.sh: go is needed to build helm; tools/setup.sh installs it" >&2; exit 1; }
    mkdir -p "$cache"
    # One build at a time; the second caller finds the work done.
    exec 9>"$cache/cluster-helm.lock"
    flock 9
    if [ ! -x "$folder/helm" ]; then
        echo "helm.sh: building helm (about 2 minutes, once)" >&2
        (cd "$module" && CGO_ENABLED=0 go build -trimpath -mod=readonly -ldflags "$flags" -o "$folder.partial/" tool)
        mv "$folder.partial" "$folder"
    fi
fi
echo "$folder/helm"
