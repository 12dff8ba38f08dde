# promises.sh: refusals, deadlines, works of several groups and lost ranks over UCX; and what is said where UCX cannot be used.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/ucx_common.sh"

for transports in tcp,self posix,cma,self; do
  for scenario in refuse give_up work_together; do
    over "$transports" "$scenario-$transports" 3 "$ranks_program" "$scenario" native
    expect "$scenario-$transports" 3 'rank [0-9]: right$'
  done
done

# Rank 1 kills itself: every other rank raises PeerLost. No launcher, which would end them.
for transports in tcp,self posix,cma,self; do
  export UCX_TLS=$transports TUTTI_BACKEND=ucx WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT
  MASTER_PORT=$(free_port)
  processes=()
  for rank in 0 1 2; do
    RANK=$rank timeout 60 "$ranks_program" die native >"$folder/die-$rank.out" 2>"$folder/die-$rank.err" &
    processes+=($!)
  done
  for rank in 0 2; do
    wait "${processes[rank]}" || fail "rank $rank did not raise PeerLost over $transports"
    expect "die-$rank" 1 "^rank $rank: right$"
  done
  ! wait "${processes[1]}" || fail "rank 1 was to be killed"
  unset UCX_TLS TUTTI_BACKEND WORLD_SIZE MASTER_ADDR MASTER_PORT
done

# refused NAME PATTERN COMMAND…
refused() {
  local name=$1 pattern=$2
  shift 2
  if "$@" >"$folder/$name.out" 2>"$folder/$name.err"; then fail "$name: $* succeeded"; fi
  expect_error "$name" "$pattern"
}
TUTTI_LINK=pigeon refused unknown 'TUTTI_LINK=pigeon: the known links are auto, tcp, ucx' \
  "$tuttirun" -n 2 "$ranks_program" refuse native
UCX_TLS=pigeon refused transport 'link ucx: rank [01]: UCX failed in ucp_' "$tuttirun" -n 2 -B ucx "$ranks_program" refuse native
# The ranks differ in what they ask for.
refused differ-in-link 'rank 0 asks for the link ucx, rank 1 for tcp; set TUTTI_LINK alike' \
  "$tuttirun" -n 2 bash -c 'if [ "$RANK" = 0 ]; then export TUTTI_LINK=ucx; else export TUTTI_LINK=tcp; fi; exec "$@"' ranks "$ranks_program" refuse shm

run doctor "$tutti" doctor
expect doctor 1 'ucx .*UCX [0-9.]+ \(libucp.so.0\): .*tcp/lo'
