#!/usr/bin/env bash
# `make bench`: measures each stage of the road and the whole of it, in release, between fresh test servers.
#   ROWS        rows of the whole road (default 5,000,000); a tenth of them is moved too, for the linearity
#   READ_ROWS   rows of the read-encode-seal part (default 50,000,000)
#   REPEAT      runs of each transfer, of which the median counts (default 1; 3 on a quiet machine)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
"$root/tests/tools/libchdb.sh" >/dev/null
python=$("$root/tests/tools/python-env.sh")
cargo build --release --locked --bins --examples \
  -p cli -p testkit -p contract -p source-clickhouse -p sink-sqlserver -p servers
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$root/tools/bench.py" --binaries "${CARGO_TARGET_DIR:-$root/target}/release" \
  --rows "${ROWS:-5000000}" --read-rows "${READ_ROWS:-50000000}" --repeat "${REPEAT:-1}"
