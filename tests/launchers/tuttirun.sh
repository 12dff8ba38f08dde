# tuttirun.sh: our own launcher: meeting at its store, torch.distributed programs as they are, several nodes by hand.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"
tuttirun=$2

for ranks in 1 4; do
  run "tutti-$ranks" "$tuttirun" -n $ranks --no-prefix "$where_am_i" --timeout 60
done
expect_world tutti-1 1 'local 0 of 1, node 0 of 1; tuttirun: '
expect_world tutti-4 4 "local [0-3] of 4, node 0 of 1; tuttirun: met at .*127.0.0.1:[0-9]+; secret from TUTTI_SECRET"
[ ! -e "$HOME/.config" ] || fail "with tuttirun there is no need for a key file"
run repeated "$tuttirun" -n 2 --no-prefix "$where_am_i" --timeout 60 --times 3
expect repeated 6 '^rank'

# A rank with another secret fails by itself, and tuttirun, at whose store it was turned away, says so.
cat >"$folder/wrong" <<'END'
#!/bin/bash
if [ "$RANK" = 1 ]; then export TUTTI_SECRET=${TUTTI_SECRET//[0-7]/8}; fi
exec "$@"
END
chmod +x "$folder/wrong"
if "$tuttirun" -n 2 "$folder/wrong" "$where_am_i" --timeout 60 >"$folder/wrong.out" 2>"$folder/wrong.err"; then
  fail "a rank with another secret was let in"
fi
expect_error wrong '^tuttirun: somebody at 127.0.0.1 failed to authenticate'
expect_error wrong '^\[1\] .*rank 1 of 2: .*cannot be authenticated'

# Two nodes, as far as tuttirun knows: one by hand for each, as torchrun would be asked.
export TUTTI_SECRET
TUTTI_SECRET=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
port=$(free_port)
nodes=(--nnodes 2 --nproc_per_node 2 --master_addr 127.0.0.1 --master_port "$port" --no-prefix)
"$tuttirun" "${nodes[@]}" --node_rank 1 "$where_am_i" --timeout 60 >"$folder/second.out" 2>"$folder/second.err" &
second=$!
started+=("$second")
run two "$tuttirun" "${nodes[@]}" --node_rank 0 "$where_am_i" --timeout 60
wait "$second" || fail "the second node: exit $?"
cat "$folder/second.out" >>"$folder/two.out"
expect_world two 4 "secret from TUTTI_SECRET"
unset TUTTI_SECRET

# A program of torch.distributed that has never heard of tuttirun.
python=${TUTTI_PYTHON:-$source_folder/.venv/bin/python}
[ -x "$python" ] && "$python" -c 'import torch.distributed' 2>/dev/null || skip "torch is not installed (./dev makes .venv with it)"
cat >"$folder/gloo.py" <<'END'
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.full((4,), float(dist.get_rank() + 1))
dist.all_reduce(x)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {x.tolist()}, {torch.get_num_threads()} threads")
dist.destroy_process_group()
END
VIRTUAL_ENV=$(dirname "$(dirname "$python")") run gloo "$tuttirun" -n 4 --no-prefix --timeout 120s "$folder/gloo.py"
expect_world gloo 4 'sum \[10\.0, 10\.0, 10\.0, 10\.0\], [0-9]+ threads'
