# lost_hosts.sh: a rank, an agent or a host dies under a job on several hosts; the others learn who and how, shrink and go on.
# SPDX-License-Identifier: Apache-2.0
#
#   lost_hosts.sh TUTTIRUN SURVIVOR_RANKS
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
program=$2
make_hosts a b c

begin() {
  export STEP_MS=10
  on_hosts_in_background "$1" --silence 3s --keep-going -H a:2,b:1,c:1 "$program" 300
  wait_for_lines "$1" 1 'under way$'
}

# heard NAME RANK REASON LIMIT_MS: the other ranks of living hosts heard it after $died_ms, soon, and ended well together.
heard() {
  local latest
  end_of "$1" 0
  expect "$1" 3 "lost rank $2 on .*: rank $2 is lost: $3"
  expect "$1" 3 'ended in a group of 3$'
  latest=$(sed -n 's/.*lost rank .* at \([0-9]*\) ms: .*/\1/p' "$folder/$1.out" | sort -n | tail -n 1)
  echo "$1: all heard of it after $((latest - died_ms)) ms"
  [ $((latest - died_ms)) -le "$4" ] || fail "$1: it took $((latest - died_ms)) ms"
}

monotonic_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }

begin rank
died_ms=$(monotonic_ms)
kill -9 "$(processes_on b | awk '$2 ~ /^survivor_ranks/ { print $1; exit }')"
heard rank 2 'its process [0-9]+ on b was killed by signal 9, SIGKILL \(Killed\)$' 1000
expect_hosts_empty_soon rank

# The remote shell of a host ends with its agent: known at once.
begin agent
died_ms=$(monotonic_ms)
kill -9 "$(pid_on c tuttirun)"
heard agent 3 'host c was lost: ssh ended with status 255(: .*)?$' 1500
expect_hosts_empty_soon agent

# Nothing can be known of a host whose network is gone, but that it is silent.
begin host
died_ms=$(monotonic_ms)
ip -n "$net-c" link set eth0 down
heard host 3 'host c was lost: nothing was heard of it for 3 s$' 5000
expect_only_sshd_soon c
echo "lost hosts: all well"
