# Sourced by run.sh and down.sh: processes of the demo, recorded so that a later run can end what an earlier one left.
#
# A record is .demo/NAME.pid with two lines: process id, and start time in clock ticks since boot. The pair names a process for
# good; the id alone may belong to another one by now.

start_time() { # PID
  # The second field is the command in parentheses and may hold anything, also spaces.
  sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

record() { # NAME PID
  printf '%s\n%s\n' "$2" "$(start_time "$2")" >"$state/$1.pid"
}

# True if the recorded process still runs: same start time, and a command line that names this demo's folder.
recorded_runs() { # FILE
  local pid="" started=""
  { read -r pid && read -r started; } <"$1" || return 1
  [[ $pid =~ ^[1-9][0-9]*$ && -n $started && $(start_time "$pid") == "$started" ]] || return 1
  tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$state" || return 1
  recorded_pid=$pid
}

# Ends every recorded process that still runs: asked first, and killed if it has not ended within 30 seconds.
end_recorded() {
  local file name tries
  for file in "$state"/demo.pid "$state"/*.pid; do # the client first: it settles its transfer while the servers still answer
    [ -f "$file" ] || continue
    name=$(basename "$file" .pid)
    if recorded_runs "$file"; then
      if ! kill -TERM "$recorded_pid" 2>/dev/null; then
        echo "demo: $name (process $recorded_pid) of an earlier demo belongs to another user and is left running" >&2
        continue
      fi
      for ((tries = 0; tries < 300; tries++)); do
        recorded_runs "$file" || break
        sleep 0.1
      done
      if recorded_runs "$file"; then
        kill -KILL "$recorded_pid" 2>/dev/null || true
      fi
      ended+=("$name")
    fi
    rm -f "$file" 2>/dev/null || true
  done
}

# Ends the cluster of this folder, if there is one, also one whose `up` did not end.
end_cluster() {
  [ -d "$state/cluster" ] || return 0
  if "$testkit" cluster down --dir "$state/cluster" 2>"$state/cluster-down.err"; then
    ended+=("cluster")
    rm -f "$state/cluster.ready"
  else
    echo "demo: the cluster in .demo/cluster was not ended: $(tail -n 1 "$state/cluster-down.err")" >&2
    return 1
  fi
}
