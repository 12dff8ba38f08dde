# survivors.sh: when ranks die, the others learn at once who and how, shrink their group and go on. On one host.
# SPDX-License-Identifier: Apache-2.0
#
#   survivors.sh TUTTIRUN SURVIVOR_RANKS [TIMES]
source "$(dirname "${BASH_SOURCE[0]}")/../launch/common.sh"
program=$2
times=${3:-1}

# survive NAME LEFT LIMIT_MS ARGUMENTS…: so many ranks end well, and heard of the first death within the limit.
survive() {
  local name=$1 left=$2 limit=$3 died heard
  shift 3
  launch "$name" 0 "$@"
  expect "$name" "$left" "ended in a group of $left\$"
  died=$(sed -n 's/.*dies at \([0-9]*\) ms$/\1/p' "$folder/$name.out" | sort -n | head -n 1)
  heard=$(sed -n 's/.*lost rank .* at \([0-9]*\) ms: .*/\1/p' "$folder/$name.out" | sort -n | head -n "$left" | tail -n 1)
  echo "$name: all heard of it after $((heard - died)) ms"
  [ $((heard - died)) -le "$limit" ] || fail "$name: it took $((heard - died)) ms"
  expect_nothing_left "$name"
}

for ((round = 1; round <= times; ++round)); do
  for backend in native shm; do
    export TUTTI_BACKEND=$backend
    survive "one-$backend" 3 1000 -n 4 --keep-going "$program" 20 2:7
    expect "one-$backend" 3 'lost rank 2 on .*: rank 2 is lost: its process [0-9]+ was killed by signal 9, SIGKILL \(Killed\)$'
    survive "first-$backend" 3 1000 -n 4 --keep-going "$program" 20 0:7
    survive "two-$backend" 3 1000 -n 5 --keep-going "$program" 20 1:7 3:7
    survive "later-$backend" 2 1000 -n 4 --keep-going "$program" 20 1:7 3:12
    survive "during-$backend" 3 1000 -n 5 --keep-going "$program" 20 1:7 3:0:shrink
  done
done
# Without --keep-going the first failure ends the job.
launch end 137 -n 3 "$program" 20 1:7
# Nobody is left to go on.
launch nobody 137 -n 2 --keep-going "$program" 20 0:3 1:3
echo "survivors: all well"
