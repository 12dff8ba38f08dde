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
