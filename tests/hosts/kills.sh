# kills.sh: whatever dies, everything ends on every host, and tuttirun names what it was.
# SPDX-License-Identifier: Apache-2.0
#
#   kills.sh TUTTIRUN [TIMES]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
make_hosts a b c
times=${2:-1}

# A chain: tuttirun starts a, a starts b, b starts c; each host has ranks with a child and a daemon of their own.
begin() {
  on_hosts_in_background "$1" --silence 3s --fan-out 1 -H a:1,b:1,c:1 "$folder/rank" wait
  wait_for_lines "$1" 3 'ready$'
}

# agent_on HOST: the agent, not its guard.
agent_on() { pid_on "$1" tuttirun; }
# The sshd that holds the agent's connection.
session_on() { processes_on "$1" | awk '$2 == "sshd" { print $1 }' | tail -n 1; }

for ((round = 1; round <= times; ++round)); do
  begin tuttirun
  kill -9 "$launched"
  end_of tuttirun 137
  expect_hosts_empty_soon "tuttirun was killed"

  for host in a b c; do
    begin agent
    kill -9 "$(agent_on $host)"
    end_of agent 1
    expect_last agent "host $host was lost after .*: ssh ended with status 255"
    expect_hosts_empty_soon "the agent on $host was killed"
  done

  begin session
  kill -9 "$(session_on b)"
  end_of session 1
  expect_last session 'host b was lost after'
  expect_hosts_empty_soon "the sshd on b was killed"

  begin guard
  kill -9 "$(pid_on b tutti-guard)"
  end_of guard 137
  expect_last guard "b's guard process [0-9]+ was killed after .*, and the ranks with it"
  expect_hosts_empty_soon "the guard on b was killed"

  begin rank
  kill -9 "$(pid_on c rank)"
  end_of rank 137
  expect_last rank 'rank 2 of 3 \(.*, process [0-9]+ on c\) was killed by signal 9'
  expect_hosts_empty_soon "a rank was killed"

  # A host that falls silent is lost after --silence; so is tuttirun, for the host.
  begin silent
  ip -n "$net-c" link set eth0 down
  end_of silent 1
  expect_last silent 'host c was lost after .*: nothing was heard of it for 3 s'
  expect_only_sshd_soon c
  ip -n "$net-c" link set eth0 up

  for id in $(session_on c); do kill -9 "$id"; done   # it would find out by itself, but late

  begin stopped
  kill -STOP "$(agent_on b)"
  end_of stopped 1
  expect_last stopped 'host b was lost after .*: nothing was heard of it for 3 s'
  kill -CONT $(processes_on b | cut -d' ' -f1) 2>/dev/null || true
  expect_hosts_empty_soon "the agent on b was stopped"
done
echo "kills: all well"
