# torchrun.sh: torchrun, on one node (a private record) and as two nodes (the agent's store).
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

torchrun=${TUTTI_TORCHRUN:-$source_folder/.venv/bin/torchrun}
[ -x "$torchrun" ] || torchrun=$(command -v torchrun || true)
[ -n "$torchrun" ] || skip "torchrun is not installed (./dev makes .venv with it)"
export OMP_NUM_THREADS=1

run one "$torchrun" --standalone --nproc-per-node 3 --no-python "$where_am_i" --timeout 60 --times 2
expect one 6 "local [0-2] of 3, node 0 of 1; torchrun: met at rank 0's store at 127.0.0.1:[0-9]+, found by a record in $HOME/.config/tutti/torchrun-.*; secret from the key file"
expect_no_notes

# Two nodes, as torchrun counts them: two agents, the second joining the first one's store.
two_nodes() {
  local name=$1 port
  port=$(free_port)
  local launch=("$torchrun" --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint "127.0.0.1:$port"
                --rdzv-id "$name" --no-python "$where_am_i" --timeout 60)
  "${launch[@]}" >"$folder/$name.second.out" 2>"$folder/$name.second.err" &
  local second=$!
  started+=("$second")
  "${launch[@]}" >"$folder/$name.out" 2>"$folder/$name.err" && first_status=0 || first_status=$?
  wait "$second" && second_status=0 || second_status=$?
  cat "$folder/$name.second.out" >>"$folder/$name.out"
  cat "$folder/$name.second.err" >>"$folder/$name.err"
}

export TUTTI_SECRET
TUTTI_SECRET=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
two_nodes two
[ "$first_status" = 0 ] && [ "$second_status" = 0 ] || fail "two nodes: exit $first_status and $second_status"
expect_world two 4 "local [01] of 2, node [01] of 2; torchrun: met at .* found by the store of torchrun's agent at .*; secret from TUTTI_SECRET"

unset TUTTI_SECRET
two_nodes refused
[ "$first_status" != 0 ] || fail "several nodes without a secret were not refused"
expect_error refused 'rank [0-3] of 4: torchrun started ranks on several nodes and gives them no secret.*TUTTI_SECRET'
