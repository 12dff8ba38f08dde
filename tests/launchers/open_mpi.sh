# open_mpi.sh: Open MPI's mpirun; meeting point and secret through PMIx.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$folder
mpirun=$(command -v mpirun.openmpi || command -v mpirun || true)
[ -n "$mpirun" ] || skip "Open MPI's mpirun is not installed"
[[ $("$mpirun" --version) == *open-mpi* ]] || skip "$mpirun is not Open MPI's"
launch=("$mpirun" --oversubscribe)

run four "${launch[@]}" -n 4 "$where_am_i" --timeout 60
expect_world four 4 "local [0-3] of 4, node 0 of 1; Open MPI: met at rank 0's store at 127.0.0.1:[0-9]+, found by PMIx's key-value space; secret from rank 0, through PMIx"
[ ! -e "$HOME/.config" ] || fail "with PMIx there is no need for a key file"

run one "${launch[@]}" -n 1 "$where_am_i"
expect_world one 1 'Open MPI: a group of one'

run repeated "${launch[@]}" -n 2 "$where_am_i" --timeout 60 --times 3
expect repeated 6 '^rank'

# Programs that use MPI themselves, before or after Tutti.
for when in before after; do
  run "mpi-$when" "${launch[@]}" -n 2 "$where_am_i" --timeout 60 --mpi $when
  expect_world "mpi-$when" 2 'Open MPI: met at'
done
