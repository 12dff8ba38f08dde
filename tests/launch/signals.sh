# signals.sh: signals reach the ranks; Ctrl-C once is a request, twice an order.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

# USR1 and USR2 go to the ranks and to nobody else: a child that does not expect them would die of them.
listen='trap "echo got USR1" USR1; trap "echo got USR2; exit 0" USR2; sleep 300 & echo ready
        while :; do wait; kill -0 $! || { echo the child is gone; exit 1; }; done'
launch_in_background users -n 3 bash -c "$listen"
wait_for_lines users 3 ready
kill -USR1 "$launched"
wait_for_lines users 3 'got USR1'
kill -USR2 "$launched"
end_of users 0
expect users 3 'got USR2'
expect_nothing_left users

# Ranks that take a signal as a reason to end well have ended well.
for signal in INT TERM; do
  launch_in_background "saved-$signal" -n 2 bash -c "trap 'echo saved; exit 0' $signal; sleep 300 & echo ready; while :; do wait; done"
  wait_for_lines "saved-$signal" 2 ready
  kill -$signal "$launched"
  end_of "saved-$signal" 0
  expect "saved-$signal" 2 saved
  expect_last "saved-$signal" "^tuttirun: ended by signal [0-9]+, SIG$signal"
  expect_nothing_left "saved-$signal"
done

declare -A status=([INT]=130 [TERM]=143 [HUP]=129 [QUIT]=131)
for signal in INT TERM HUP QUIT; do
  launch_in_background "plain-$signal" -n 2 bash -c 'echo ready; exec sleep 300'
  wait_for_lines "plain-$signal" 2 ready
  kill -$signal "$launched"
  end_of "plain-$signal" "${status[$signal]}"
  expect_nothing_left "plain-$signal"
done

# With a grace period longer than this test may take.
launch_in_background twice -n 2 --grace 1h "$folder/rank" stubborn
wait_for_lines twice 2 ready
kill -INT "$launched"
wait_for_lines twice 2 ready
for _ in $(seq 600); do
  kill -INT "$launched" 2>/dev/null || break   # two that come at once count as one
  sleep 0.05
done
end_of twice 130
expect_nothing_left twice

# What tuttirun inherits it hands to the ranks, and copes with itself: SIGCHLD ignored would have the kernel reap the ranks unasked.
launch_with() { # launch_with NAME STATUS env's-options -- ARGUMENTS…
  local name=$1 expected=$2 options=() status=0
  shift 2
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  timeout -k 5 60 env "${options[@]}" "$tuttirun" "$@" >"$folder/$name.out" 2>"$folder/$name.err" || status=$?
  [ "$status" = "$expected" ] || fail "$name: exit $status instead of $expected"
}
show='import signal as s
print("child end ignored", s.getsignal(s.SIGCHLD) == s.SIG_IGN, "blocked", sorted(s.pthread_sigmask(s.SIG_BLOCK, [])))'
launch_with unheard 0 --ignore-signal=CHLD --block-signal=USR1 -- -n 2 python3 -c "$show"
expect unheard 2 'child end ignored True blocked \[<Signals.SIGUSR1: 10>\]'
launch_with heard 0 --default-signal=CHLD -- -n 2 python3 -c "$show"
expect heard 2 'child end ignored False blocked \[\]'
launch_with unheard-failure 7 --ignore-signal=CHLD -- -n 2 "$folder/rank" exit
expect_last unheard-failure 'exited with status 7'
expect_nothing_left unheard-failure

# Under nohup a hang-up ends nothing.
env --ignore-signal=HUP "$tuttirun" -n 2 bash -c 'trap "exit 0" USR1; sleep 300 & echo ready; wait' >"$folder/nohup.out" 2>"$folder/nohup.err" &
launched=$!
started+=("$launched")
wait_for_lines nohup 2 ready
kill -HUP "$launched"
kill -USR1 "$launched"
end_of nohup 0
expect_nothing_left nohup
