# common.sh: what the launcher tests share. Sourced, with the path of where_am_i as the script's first argument.
# SPDX-License-Identifier: Apache-2.0
#
# Everything happens in a temporary folder, which is also the home, so that key files and records stay in it. At the end
# nothing may be left: neither a process that the test started nor a record.
set -euo pipefail

where_am_i=$(realpath "$1")
source_folder=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
folder=$(mktemp -d "${TMPDIR:-/tmp}/tutti-launchers-XXXXXX")
export HOME=$folder/home
mkdir -p "$HOME"
unset XDG_CONFIG_HOME TUTTI_SECRET TUTTI_STORE RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
started=()   # ids of processes that run in the background

# Every process that the test started, however far it went off by itself, has the test's home in its environment.
# Only the shell itself looks, because a program that it starts to look would be found.
descendants() {
  local path id variable
  for path in /proc/[0-9]*/environ; do
    id=${path#/proc/}
    while IFS= read -r -d '' variable; do
      if [ "$variable" = "HOME=$folder/home" ]; then echo "${id%/environ}"; fi
    done <"$path"
  done 2>/dev/null || true
}

finish() {
  local status=$? id index
  for ((index = ${#started[@]} - 1; index >= 0; --index)); do kill "${started[index]}" 2>/dev/null || true; done
  for _ in $(seq 40); do [ -z "$(descendants)" ] && break; sleep 0.2; done
  for id in $(descendants); do
    if [ "$status" = 0 ]; then echo "FAILED: process $id was left: $(tr '\0' ' ' <"/proc/$id/cmdline")" >&2; status=1; fi
    kill -9 "$id" 2>/dev/null || true
  done
  rm -rf "$folder"
  exit "$status"
}
trap finish EXIT

fail() {
  echo "FAILED: $*" >&2
  for file in "$folder"/*.out "$folder"/*.err; do
    if [ -s "$file" ]; then echo "--- $(basename "$file")" >&2; tail -n 40 "$file" >&2; fi
  done
  exit 1
}

# A launcher that is not installed: skipped, with the reason, unless everything is required.
skip() {
  if [ "${TUTTI_REQUIRE_ALL:-0}" = 1 ]; then fail "$* (and TUTTI_REQUIRE_ALL=1)"; fi
  echo "SKIPPED: $*"
  exit 77
}

need() { command -v "$1" >/dev/null || skip "$1 is not installed"; }

# A port that nobody uses at this moment.
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# run NAME COMMAND…: the command must succeed; its output goes to NAME.out and NAME.err.
run() {
  local name=$1
  shift
  "$@" >"$folder/$name.out" 2>"$folder/$name.err" || fail "$name: exit $? of $*"
}

# expect NAME COUNT PATTERN: so many lines of the output fit the (extended) pattern.
expect() {
  local found
  found=$(grep -Ec -- "$3" "$folder/$1.out" || true)
  [ "$found" = "$2" ] || fail "$1: $found lines instead of $2 fit '$3'"
}

expect_error() {
  grep -Eq -- "$2" "$folder/$1.err" || fail "$1: no error fits '$2'"
}

# expect_world NAME SIZE PATTERN: every rank once, each line fitting the pattern.
expect_world() {
  for ((rank = 0; rank < $2; ++rank)); do expect "$1" 1 "^rank $rank of $2: "; done
  expect "$1" "$2" "$3"
}

expect_no_notes() {
  local records
  records=$(find "$HOME" -name '*.note*')
  [ -z "$records" ] || fail "records were left: $records"
}
