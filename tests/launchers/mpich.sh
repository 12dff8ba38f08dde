# mpich.sh: MPICH's mpirun (hydra); meeting point and secret through PMI.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

mpirun=$(command -v mpirun.mpich || command -v mpiexec.hydra || true)
[ -n "$mpirun" ] || skip "MPICH's mpirun is not installed"

run four "$mpirun" -n 4 "$where_am_i" --timeout 60
expect_world four 4 "local [0-3] of 4, node 0 of 1; MPICH: met at rank 0's store at 127.0.0.1:[0-9]+, found by PMI's key-value space; secret from rank 0, through PMI"
[ ! -e "$HOME/.config" ] || fail "with PMI there is no need for a key file"

run one "$mpirun" -n 1 "$where_am_i"
expect_world one 1 'MPICH: a group of one'

run repeated "$mpirun" -n 2 "$where_am_i" --timeout 60 --times 3
expect repeated 6 '^rank'

for when in before after; do
  run "mpi-$when" "$mpirun" -n 2 "$where_am_i" --timeout 60 --mpi $when
  expect_world "mpi-$when" 2 'MPICH: met at'
done
