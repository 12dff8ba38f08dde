# tls.sh: with TUTTI_TLS=1 nobody between the hosts reads what the ranks say to each other; sides that do not agree on it say so.
# SPDX-License-Identifier: Apache-2.0
#
#   tls.sh TUTTIRUN WHERE_AM_I NUMBER_RANKS SURVIVOR_RANKS
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
place=$2 number_ranks=$3 survivor_ranks=$4
need python3
make_hosts a b

# overhear NAME: what passes the switch goes to NAME.heard; quiet: no more.
overhear() {
  ip netns exec "$net-switch" "$(realpath "$(command -v python3)")" "$source_folder/tests/hosts/overhear.py" "$folder/$1.heard" &
  listener=$!
  started+=("$listener")
  for _ in $(seq 200); do [ -e "$folder/$1.heard.ready" ] && return; sleep 0.05; done
  fail "$1: nobody listens"
}
quiet() { kill "$listener"; wait "$listener" 2>/dev/null || true; }
# What ranks send in the job below: rank 0's thousand times 1.0, and the words of the rendezvous.
numbers='(\x00\x00\x00\x00\x00\x00\xf0\x3f){20}'
words='rendezvous/'
heard() { grep -qaP "$2" "$folder/$1.heard"; }
export LC_ALL=C

overhear plain
on_hosts plain 0 -H a:1,b:1 "$survivor_ranks" 50
quiet
heard plain "$numbers" || fail "plain: the numbers were not overheard; this test would not notice them under TLS"
heard plain "$words" || fail "plain: the words were not overheard"

overhear sealed
TUTTI_TLS=1 on_hosts sealed 0 -H a:1,b:1 "$survivor_ranks" 50
quiet
expect sealed 2 'ended in a group of 2$'
! heard sealed "$numbers" || fail "sealed: numbers were overheard"
! heard sealed "$words" || fail "sealed: the words of the store were overheard"
heard sealed '\x17\x03\x03' || fail "sealed: no record of TLS was overheard"

# Every verb; by -x, which the agent that serves the store has to heed; a lost rank is named as ever.
on_hosts calls 0 -x TUTTI_TLS=1 -H a:2,b:2 "$number_ranks" every
TUTTI_TLS=1 on_hosts lost 0 --keep-going -H a:2,b:2 "$survivor_ranks" 20 2:7
expect lost 3 'lost rank 2 on b .*its process [0-9]+ on b was killed by signal 9'
expect lost 3 'ended in a group of 3$'
expect_hosts_empty_soon lost

# by_hand HOST NAME VARIABLE=VALUE…: a rank that nobody launches.
by_hand() {
  local host=$1 name=$2
  shift 2
  in_host "$host" env WORLD_SIZE=2 MASTER_ADDR=10.213.9.2 MASTER_PORT=29617 "$@" timeout 30 "$place" --timeout 5 >"$folder/$name.out" 2>"$folder/$name.err"
}
one=$(printf '%064d' 1) two=$(printf '%064d' 2)

for wishes in "1 0" "0 1"; do
  read -r of_a of_b <<<"$wishes"
  by_hand a "first-$of_a" RANK=0 TUTTI_SECRET="$one" TUTTI_TLS="$of_a" & first=$!
  ! by_hand b "second-$of_b" RANK=1 TUTTI_SECRET="$one" TUTTI_TLS="$of_b" || fail "a rank without TLS met one with it"
  wait "$first" && fail "a rank with TLS met one without it"
  expect_error "second-$of_b" 'TLS is asked for on (this|its) side only: set TUTTI_TLS=1 for all ranks'
  expect_error "first-$of_a" 'TLS is asked for on (this|its) side only'
done
by_hand a right RANK=0 TUTTI_SECRET="$one" TUTTI_TLS=1 & first=$!
by_hand b left RANK=1 TUTTI_SECRET="$one" TUTTI_TLS=1 || fail "two ranks with TLS do not meet"
wait "$first" || fail "two ranks with TLS do not meet"
by_hand a right RANK=0 TUTTI_SECRET="$one" TUTTI_TLS=1 & first=$!
! by_hand b left RANK=1 TUTTI_SECRET="$two" TUTTI_TLS=1 || fail "a rank with another secret got in"
wait "$first" && fail "a rank with another secret got in"
expect_error left "does not know this job's secret"

# What cannot be encrypted is refused.
TUTTI_TLS=1 on_hosts ucx 1 -H a:1,b:1 -x TUTTI_LINK=ucx "$number_ranks" bare
expect_error ucx 'link ucx: rank 0: TUTTI_TLS=1 asks for encryption, which UCX does not have'
TUTTI_TLS=1 TUTTI_BACKEND=mpi on_hosts mpi 1 -H a:1,b:1 "$number_ranks" bare
expect_error mpi "backend mpi: rank 0: TUTTI_TLS=1 asks for encryption, and MPI's connections have none"
echo "tls: all well"
