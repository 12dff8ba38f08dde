# common.sh: what the tests of tuttirun share: ranks with children of their own, and a look at what is left of them.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced, with the path of tuttirun as the script's first argument.
source "$(dirname "${BASH_SOURCE[0]}")/../launchers/common.sh"
tuttirun=$where_am_i
unset NO_COLOR TUTTI_BACKEND OMP_NUM_THREADS NPROC
ulimit -c 0

# rank MODE: a rank with a child in its session and one that went off into another; the last rank ends as MODE says.
cat >"$folder/rank" <<'END'
#!/bin/bash
sleep 300 &
setsid sleep 300 &
if [ "$RANK" = $((WORLD_SIZE - 1)) ]; then
  echo "last words of rank $RANK"
  case $1 in
    exit) exit 7 ;;
    abort) kill -ABRT $$ ;;
    segfault) kill -SEGV $$ ;;
    kill) kill -KILL $$ ;;
  esac
fi
if [ "$1" = stubborn ]; then trap '' TERM INT; fi
echo ready
while :; do sleep 300; done
END
chmod +x "$folder/rank"

# launch NAME STATUS ARGUMENTS…: tuttirun must end with that status; output in NAME.out and NAME.err.
launch() {
  local name=$1 expected=$2 status=0
  shift 2
  timeout -k 5 60 "$tuttirun" "$@" >"$folder/$name.out" 2>"$folder/$name.err" || status=$?
  [ "$status" = "$expected" ] || fail "$name: exit $status instead of $expected of tuttirun $*"
}

# The last thing that is printed is the cause.
expect_last() {
  grep -Eq -- "$2" <<<"$(tail -n 1 "$folder/$1.err")" || fail "$1: the last line does not fit '$2'"
}

expect_nothing_left() {
  local left
  left=$(descendants)
  [ -z "$left" ] || fail "$1: processes were left: $(ps -o pid=,args= -p "$(paste -sd, <<<"$left")")"
}

# Whatever is left must go by itself, soon.
expect_nothing_left_soon() {
  for _ in $(seq 200); do [ -z "$(descendants)" ] && return; sleep 0.05; done
  expect_nothing_left "$1"
}

# wait_for_lines NAME COUNT PATTERN
wait_for_lines() {
  local found
  for _ in $(seq 600); do
    found=$(grep -Ec -- "$3" "$folder/$1.out" 2>/dev/null || true)   # there may be no file yet
    [ "${found:-0}" -ge "$2" ] && return
    sleep 0.05
  done
  fail "$1: there were never $2 lines that fit '$3'"
}

# launch_in_background NAME ARGUMENTS…: its process id is in $launched. A shell that runs a script has its background processes
# ignore SIGINT, which is not what happens to a person.
launch_in_background() {
  local name=$1
  shift
  : >"$folder/$name.out"   # at once: who waits for its lines must not find those of an earlier one of that name
  env --default-signal=INT,QUIT "$tuttirun" "$@" >"$folder/$name.out" 2>"$folder/$name.err" &
  launched=$!
  started+=("$launched")
}

# end_of NAME STATUS: waits for $launched.
end_of() {
  local status=0
  wait "$launched" 2>/dev/null || status=$?
  [ "$status" = "$2" ] || fail "$1: exit $status instead of $2"
}
