# contract.sh: every verb × dtype × reduction × shape, with 1 to 5 ranks on one MPI, against the scalar reference.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/mpi_common.sh"

# On a few cores many ranks that poll take long: the larger groups get fewer cases. TUTTI_SOAK has them all.
if [ "${TUTTI_SOAK:-0}" = 1 ]; then cases=(2000 2000 2000 2000 2000); else cases=(100 200 100 30 30); fi
case $mpi in impi* | *5) sizes=(2 3 5) ;; *) sizes=(1 2 3 4 5) ;; esac
if [ "${TUTTI_SOAK:-0}" = 1 ]; then sizes=(1 2 3 4 5); fi
for size in "${sizes[@]}"; do
  RANK=0 ranks "contract-$size" "$size" "$contract_ranks" rank "${cases[size - 1]}"
done

# That the MPI is the one that was meant.
case $mpi in
  impi) library='Intel\(R\) MPI .*\(libmpi.so.12\), because its launcher' ;;
  impi-abi) library='Intel\(R\) MPI .*\(libmpi_abi.so.1\), because TUTTI_MPI asks' ;;
  openmpi) library='Open MPI v4.*\(libmpi.so.40\), because its launcher' ;;
  openmpi5) library='Open MPI v5.*\(libmpi.so.40\), because its launcher' ;;
  mpich5) library='MPICH .*5\..*\(libmpi.so.12\), because TUTTI_MPI asks' ;;
  mpich) library='MPICH .*\(libmpich.so.12\), because its launcher' ;;
esac
RANK=0 TUTTI_LOG=info ranks which-library 2 "$mpi_ranks" refuse
expect_error which-library "MPI: $library"

# Segments of a few elements: every verb goes through several.
RANK=0 TUTTI_MPI_SEGMENT_BYTES=256 ranks contract-in-segments 3 "$contract_ranks" rank 40
