# limits.sh: where the system starts no more processes or threads, tuttirun says which limit that is, and leaves nothing behind.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

# The limit counts all processes and threads of a user, and does not hold for root: nobody else should be that user.
as_nobody=()
if [ "$(id -u)" = 0 ]; then as_nobody=(setpriv --reuid=64123 --regid=64123 --clear-groups); fi

# tuttirun itself, the store's thread, the printer's, the guard and the ranks: one of them is the first that is too many.
# limited NAME PROCESSES PATTERN
limited() {
  local status=0
  timeout -k 5 30 "${as_nobody[@]}" prlimit --nproc="$2" "$tuttirun" -n 4 sleep 20 >"$folder/$1.out" 2>"$folder/$1.err" || status=$?
  [ "$status" != 0 ] || fail "$1: four ranks were started in spite of the limit"
  expect_last "$1" "^tuttirun: $3: Resource temporarily unavailable: the limit on processes and threads is reached \(of the user, \`ulimit -u\`: $2;"
  expect_last "$1" 'raise it, or start fewer ranks'
  expect_nothing_left_soon "$1"
}
limited store 1 'cannot start a thread to serve the store'
if [ "$(id -u)" = 0 ]; then
  limited printer 2 'cannot start a thread that prints'
  limited guard 3 'cannot start the process that guards the ranks'
  limited first 4 'rank 0 of 4 could not be started: sleep'
  limited third 6 'rank 2 of 4 could not be started: sleep'
fi
