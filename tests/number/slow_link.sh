# slow_link.sh: ranks of two hosts with 2 Mbit/s between them: a message takes longer than silence is borne, and nobody is lost.
# SPDX-License-Identifier: Apache-2.0
#
#   slow_link.sh NUMBER_RANKS
#
# A host is a network and a process namespace of its own: its ranks can be judged by what is heard of them only.
source "$(dirname "${BASH_SOURCE[0]}")/../launchers/common.sh"
program=$where_am_i
need ip
need tc
name=tutti-slow-$$
remove_networks() {
  local side
  for side in a b; do ip netns del "$name-$side" 2>/dev/null || true; done
}
# Keeps the status that the test ends with.
remove_and_finish() {
  local status=$?
  remove_networks
  set +e
  (exit "$status")
  finish
}
trap remove_and_finish EXIT

for side in a b; do ip netns add "$name-$side" 2>"$folder/ip.err" || skip "no network namespaces here: $(cat "$folder/ip.err")"; done
ip link add eth0 netns "$name-a" type veth peer name eth0 netns "$name-b"
number=0
for side in a b; do
  number=$((number + 1))
  ip -n "$name-$side" addr add "10.213.8.$number/24" dev eth0
  ip -n "$name-$side" link set lo up
  ip -n "$name-$side" link set eth0 up
  tc -n "$name-$side" qdisc add dev eth0 root tbf rate 2mbit burst 16kb latency 400ms 2>"$folder/tc.err" ||
    skip "no token bucket filter here: $(cat "$folder/tc.err")"
done

export WORLD_SIZE=4 MASTER_ADDR=10.213.8.1 MASTER_PORT=29511 TUTTI_BACKEND=native
TUTTI_SECRET=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
export TUTTI_SECRET
pids=()
for rank in 0 1 2 3; do
  side=a
  if [ "$rank" -ge 2 ]; then side=b; fi
  RANK=$rank ip netns exec "$name-$side" unshare --pid --fork --kill-child --uts \
    sh -c 'hostname "$1"; exec "$2" large' sh "host-$side" "$program" \
    >"$folder/$rank.out" 2>"$folder/$rank.err" &
  pids+=($!)
  started+=($!)
done
begin=$EPOCHREALTIME
for rank in 0 1 2 3; do wait "${pids[rank]}" || fail "rank $rank ended with status $?"; done
took=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
[ "$took" -gt 6000 ] || fail "it took $took ms only: the link was not slow, and nothing was tried"
echo "4 ranks, 2 Mbit/s between their hosts: all well after $took ms"
