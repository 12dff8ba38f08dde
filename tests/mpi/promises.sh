# promises.sh: mismatches, refusals, deadlines, groups and lost ranks on one MPI.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/mpi_common.sh"

for scenario in differ differ_in_pairs refuse give_up work_together; do
  for size in 2 3; do
    ranks "$scenario-$size" "$size" "$mpi_ranks" "$scenario"
    expect "$scenario-$size" "$size" '^rank [0-9]: right$'
  done
done
# No rank gave MPI data that another one did not want: otherwise it could not be finalised.
! grep -q 'not finalised' "$folder"/differ*.err "$folder"/refuse*.err || fail "MPI is left with calls that do not end"
ranks groups 2 "$mpi_ranks" make_groups
expect groups 2 '^rank [0-9]: right$'

# Ranks that would meet by PMIx, as on several hosts: Open MPI 5 has to come first, and they meet on it.
if [ "$mpi" = openmpi5 ]; then
  ranks through-pmix 3 env -u PRTE_LAUNCHED "$mpi_ranks" work_together
  expect through-pmix 3 '^rank [0-9]: right$'
fi

# Groups on several backends, in a job on mpi and in one that is not.
for backend in mpi auto native; do
  scenarios=(several_backends)
  [ $backend = mpi ] || scenarios+=(mpi_for_a_part)
  for scenario in "${scenarios[@]}"; do
    world_backend=$backend
    [ $backend != auto ] || world_backend=shm
    [ $backend != native ] || [ $scenario != several_backends ] || continue  # such a job shares no memory
    TUTTI_BACKEND=$backend ranks "$scenario-$backend" 3 "$mpi_ranks" "$scenario" "$world_backend"
    expect "$scenario-$backend" 3 '^rank [0-9]: right$'
  done
done

# Rank 1 kills itself inside a call: every other rank raises PeerLost. MPICH's launcher ends the others at once and fails; what Open MPI's
# returns after it has let the others live is its own affair.
status=0
timeout 60 "${launch[@]}" "${tolerant[@]}" -n 3 "$mpi_ranks" die >"$folder/die.out" 2>"$folder/die.err" || status=$?
[ "$status" != 124 ] || fail "die: the job did not end"
case $mpi in
  openmpi*) expect die 2 '^rank [02]: right$' ;;
  *) [ "$status" != 0 ] || fail "die: the launcher says that all is well" ;;
esac
