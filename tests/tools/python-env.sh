#!/usr/bin/env bash
# Makes the Python environment of the tests in .cache/venv and prints the path of its interpreter.
# It can be run again at any time; it installs only when the requirements have changed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
requirements=$root/tests/tools/python-requirements.txt
venv=$root/.cache/venv
stamp=$venv/.requirements
mkdir -p "$root/.cache"
exec 9>"$root/.cache/venv.lock"
flock 9 # tests of several packages may ask for it at once
if ! cmp -s "$requirements" "$stamp"; then
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements" >&2
    cp "$requirements" "$stamp"
fi
echo "$venv/bin/python"
