# kills.sh: kill -9 of tuttirun, or of its guard, at random moments; nothing may be left. The second argument is how often.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"
rounds=$2
cgroups() { find /sys/fs/cgroup -maxdepth 4 -type d -name 'tuttirun-*' 2>/dev/null | sort; }
cgroups_before=$(cgroups)

# Once when the ranks are known to run: the ways in which it ends are known, too.
launch_in_background tuttirun -n 3 "$folder/rank" hang
wait_for_lines tuttirun 3 ready
kill -9 "$launched"
end_of tuttirun 137
expect_nothing_left_soon tuttirun

guard_of() { cat "/proc/$1/task/$1/children" 2>/dev/null || pgrep -P "$1" || true; }
launch_in_background guard -n 3 "$folder/rank" hang
wait_for_lines guard 3 ready
kill -9 "$(guard_of "$launched" | tr -d ' ')"
end_of guard 137
expect_nothing_left guard
expect_last guard '^tuttirun: its guard process [0-9]+ was killed after .*, and the ranks with it'

seed=${TUTTI_SEED:-$RANDOM}
echo "seed $seed (TUTTI_SEED replays it)"
RANDOM=$seed
for ((round = 0; round < rounds; ++round)); do
  launch_in_background storm -n 4 "$folder/rank" hang
  sleep "$(printf '0.%03d' $((RANDOM % 60)))"   # not to wait for anything: a random moment
  victim=$launched
  if ((round % 3 == 2)); then
    victim=$(guard_of "$launched" | tr -d ' ')
    victim=${victim:-$launched}   # there is no guard yet, or no longer
  fi
  kill -9 "$victim" 2>/dev/null || true
  wait "$launched" 2>/dev/null || true
  started=()
done
expect_nothing_left_soon storm
# Empty control groups go, too. Other tests make some of their own meanwhile, which are not empty, or gone after a while.
left=$(comm -13 <(echo "$cgroups_before") <(cgroups))
for _ in $(seq 200); do
  for group in $left; do
    if ! grep -qs 'populated 0' "$group/cgroup.events"; then left=${left/$group/}; fi
  done
  [ -z "${left//[[:space:]]/}" ] && exit 0
  sleep 0.05
done
fail "empty control groups were left: $left"
