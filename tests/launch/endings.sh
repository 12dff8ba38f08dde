# endings.sh: however a rank fails, on 1, 2 or 8 ranks with children of their own: status, cause, and nothing left.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

declare -A status=([exit]=7 [abort]=134 [segfault]=139 [kill]=137)
declare -A cause=([exit]='exited with status 7' [abort]='killed by signal 6, SIGABRT' [segfault]='killed by signal 11, SIGSEGV'
                  [kill]='killed by signal 9, SIGKILL')
for ranks in 1 2 8; do
  last=$((ranks - 1))
  for mode in exit abort segfault kill; do
    name=$mode-$ranks
    launch "$name" "${status[$mode]}" -n $ranks "$folder/rank" $mode
    expect_nothing_left "$name"
    expect_last "$name" "^tuttirun: rank $last of $ranks \(.*/rank, process [0-9]+\) (was )?${cause[$mode]}.* after [0-9.]+ m?s"
    expect_error "$name" "^\[$last\] last words of rank $last\$"
  done
  launch "hang-$ranks" 124 -n $ranks --timeout 500ms "$folder/rank" hang
  expect_nothing_left "hang-$ranks"
  expect_last "hang-$ranks" "^tuttirun: the job ran past --timeout 500 ms and was ended; ranks? 0(-$last)? of $ranks still ran"
done

# Those that do not obey SIGTERM are killed when the grace period is over.
launch stubborn 124 -n 2 --timeout 500ms --grace 300ms "$folder/rank" stubborn
expect_nothing_left stubborn

# All is well, but a daemon was left behind.
launch daemon 0 -n 2 bash -c 'setsid sleep 300 & disown'
expect_nothing_left daemon
expect_last daemon '^tuttirun: the ranks left [12] process(es)? behind'

launch well 0 -n 8 /bin/true
[ ! -s "$folder/well.err" ] || fail "a job that went well said something"
