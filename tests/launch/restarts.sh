# restarts.sh: --restarts starts a job that failed again, as a whole; --elastic replaces what was lost.
# SPDX-License-Identifier: Apache-2.0
#
#   restarts.sh TUTTIRUN
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The ranks of a start, with a child and a daemon each; rank 1 ends as $2 says in the first $1 starts, once all have spoken.
cat >"$folder/tries" <<'END'
#!/bin/bash
echo "start $TUTTI_RESTART rank $RANK/$WORLD_SIZE ${TUTTI_SECRET:0:8} $TUTTI_JOB $MASTER_PORT"
sleep 300 &
setsid sleep 300 &
: >"$0.$TUTTI_JOB.$RANK"
if [ "$RANK" = 1 ] && [ "$TUTTI_RESTART" -lt "$1" ]; then
  for ((rank = 0; rank < WORLD_SIZE; ++rank)); do
    until [ -e "$0.$TUTTI_JOB.$rank" ]; do sleep 0.02; done
  done
  printf 'half a line'
  case $2 in exit) exit 7 ;; kill) kill -KILL $$ ;; esac
fi
if [ "$RANK" != 1 ] && [ "$TUTTI_RESTART" -lt "$1" ]; then sleep 300; fi
END
chmod +x "$folder/tries"

launch again 0 -n 3 --restarts 2 "$folder/tries" 2 kill
for start in 0 1 2; do expect again 3 "start $start rank [012]/3"; done
expect_error again 'starting the job again, restart 2 of 2$'
# Ids and secrets are those of one start.
[ "$(grep -o 'rank 0/3 .*' "$folder/again.out" | cut -d' ' -f3 | sort -u | wc -l)" = 3 ] || fail "again: a secret was used twice"
[ "$(grep -o 'rank 0/3 .*' "$folder/again.out" | cut -d' ' -f4 | sort -u | wc -l)" = 3 ] || fail "again: an id was used twice"
expect_nothing_left again

launch used_up 7 -n 2 --restarts 1 "$folder/tries" 2 exit
expect_last used_up 'rank 1 of 2 \(.*tries, process [0-9]+\) exited with status 7'
expect_nothing_left used_up

# Only failures are followed by another start: no signal, no time that is up, no program that cannot be started.
launch time 124 -n 2 --restarts 3 --timeout 500ms sleep 300
launch absent 2 -n 2 --restarts 3 "$folder/absent"
launch_in_background told -n 1 --restarts 3 sh -c 'echo ready; sleep 300'
wait_for_lines told 1 'ready$'
kill -TERM "$launched"
end_of told 143
! grep -q again "$folder/told.err" || fail "told: it was started again"
# The time counts from the first start.
launch whole_time 124 -n 1 --restarts 1000000 --timeout 700ms sh -c 'sleep 0.05; exit 3'

# The files have the output of every start.
launch logs 0 -n 2 --restarts 1 --log-dir "$folder/logs" "$folder/tries" 1 kill
[ "$(grep -c '^start' "$folder/logs/rank-0.log")" = 2 ] || fail "logs: $(cat "$folder/logs/rank-0.log")"

# Replaced: the others stay. The shell ranks here do not read of rounds; what matters is who is started.
cat >"$folder/stays" <<'END'
#!/bin/bash
echo "start $TUTTI_RESTART rank $RANK/$WORLD_SIZE"
[ "$RANK" = 1 ] && [ "$TUTTI_RESTART" -lt 2 ] && { setsid sleep 300 & kill -KILL $$; }
[ "$RANK" = 1 ] && exit 0
# The pipe says which job this process belongs to now.
while [ "${round:-0}" -lt 2 ]; do
  IFS= read -r line <&$TUTTI_ROUNDS_FD 2>/dev/null || { sleep 0.05; continue; }
  round=$(tr '\t' '\n' <<<"$line" | sed -n 's/^TUTTI_RESTART=//p')
  echo "hears of round $round"
done
END
chmod +x "$folder/stays"
launch stays 0 --elastic 2:3 "$folder/stays"
expect stays 3 'start 0 rank [012]/3$'
expect stays 2 '^\[1\] start [12] rank 1/3$'
expect stays 2 'hears of round 1$'
expect stays 2 'hears of round 2$'
expect_error stays 'round 2: it is replaced, 3 ranks$'
expect_nothing_left stays

# Without replacements: with fewer, and then not at all.
launch fewer 0 --elastic 1:2 --restarts 0 sh -c '[ $RANK = 1 ] && kill -KILL $$; sleep 0.5; echo well'
expect fewer 1 '^\[0\] well$'
launch too_few 137 --elastic 2:2 --restarts 0 sh -c '[ $RANK = 1 ] && kill -KILL $$; sleep 300'
expect_last too_few 'was killed by signal 9'
expect_nothing_left too_few
echo "restarts: all well"
