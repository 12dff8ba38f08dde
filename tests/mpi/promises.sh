# promises.sh: mismatches, refusals, deadlines, groups and lost ranks on one MPI.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/mpi_common.sh"

for scenario in differ refuse give_up work_together; do
  for size in 2 3; do
    ranks "$scenario-$size" "$size" "$mpi_ranks" "$scenario"
    expect "$scenario-$size" "$size" '^rank [0-9]: right$'
  done
done
ranks groups 2 "$mpi_ranks" make_groups
expect groups 2 '^rank [0-9]: right$'

# Calls stay behind that MPI cannot end, so it is not finalised, and a launcher may call that a failure.
"${launch[@]}" -n 3 "$mpi_ranks" differ_in_pairs >"$folder/pairs.out" 2>"$folder/pairs.err" || true
expect pairs 3 '^rank [0-9]: right$'

# Rank 1 kills itself inside a call: the launcher fails, and every other rank has raised PeerLost. MPICH's launcher ends the others at once.
if timeout 60 "${launch[@]}" "${tolerant[@]}" -n 3 "$mpi_ranks" die >"$folder/die.out" 2>"$folder/die.err"; then
  fail "die: the launcher says that all is well"
elif [ $? = 124 ]; then
  fail "die: the job did not end"
fi
[ "$mpi" = mpich ] || expect die 2 '^rank [02]: right$'
