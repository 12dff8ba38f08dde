# bad_input.sh: the wrong MPI, no MPI, and ranks that no MPI has started: a clear error on every rank.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/mpi_common.sh"

# refused NAME PATTERN COMMAND…: the command fails, and says why on standard error.
refused() {
  local name=$1 pattern=$2
  shift 2
  if "$@" >"$folder/$name.out" 2>"$folder/$name.err"; then fail "$name: $* succeeded"; fi
  expect_error "$name" "$pattern"
}

case $mpi in openmpi) other=mpich ;; mpich) other=openmpi ;; esac

# The launcher of one MPI, the library of the other: every process is alone in that one.
TUTTI_MPI=$other refused other-library "the job has 2 ranks, but .* says that rank 0 is rank 0 of 1: the job was not started by this MPI's launcher" \
  "${launch[@]}" -n 2 "$mpi_ranks" refuse

# A library that is not there, on one rank and on all.
TUTTI_MPI=/nowhere/libmpi.so.40 refused no-library 'rank 0: no MPI can be used: Open MPI \(/nowhere/libmpi.so.40\): .*install Open MPI or MPICH' \
  "${launch[@]}" -n 2 "$mpi_ranks" refuse
refused no-library-on-one 'rank 1: no MPI can be used' "${launch[@]}" -n 1 "$mpi_ranks" refuse : \
  -n 1 env TUTTI_MPI=/nowhere/libmpi.so.40 "$mpi_ranks" refuse
[ "$(grep -c 'rank 1: no MPI can be used' "$folder/no-library-on-one.err")" = 2 ] || fail "not every rank says why"

TUTTI_MPI=pvm refused unknown "TUTTI_MPI takes openmpi, mpich, impi, abi, or the file" "${launch[@]}" -n 2 "$mpi_ranks" refuse

# The other MPI's library comes first in the path, under the name of this one.
path_of() { ldconfig -p | sed -n "s/.*$1 .*=> //p" | head -n 1; }
mkdir -p "$folder/first"
case $mpi in
  openmpi) ln -sf "$(path_of libmpich.so.12)" "$folder/first/libmpi.so.40" ; is="not Open MPI" ;;
  mpich) ln -sf "$(path_of libmpi.so.40)" "$folder/first/libmpich.so.12" ; is="Open MPI" ;;
esac
refused first-in-path "rank 0: no MPI can be used: .*the library under this name is $is and has another binary interface" \
  "${launch[@]}" -n 2 env LD_LIBRARY_PATH="$folder/first" "$mpi_ranks" refuse
[ "$(grep -c 'another binary interface' "$folder/first-in-path.err")" = 2 ] || fail "not every rank says which library it found"

# No mpirun for tuttirun -B mpi to hand the job to.
refused no-mpirun 'mpirun' env PATH=/nowhere "$tuttirun" -n 2 -B mpi "$mpi_ranks" refuse

# A folder without plug-ins: what is missing is said. An empty one comes first; those of the build are still found.
mkdir -p "$folder/empty"
TUTTI_MPI_PLUGINS=$folder/empty ranks empty-folder 2 "$mpi_ranks" refuse
echo 'not a library' >"$folder/empty/libtutti_mpi_$mpi.so"
TUTTI_MPI_PLUGINS=$folder/empty refused broken-plugin 'no MPI can be used: .*libtutti_mpi_.*\.so' \
  "${launch[@]}" -n 2 "$mpi_ranks" refuse

# Ranks that differ in what all have to agree on.
refused segments 'rank 1 uses .*in segments of 4096 bytes' "${launch[@]}" -n 1 "$mpi_ranks" refuse : \
  -n 1 env TUTTI_MPI_SEGMENT_BYTES=4096 "$mpi_ranks" refuse
