# mpi_common.sh: starting ranks by one MPI's launcher. Sourced, with the programs and the MPI's name as the script's arguments.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/../launchers/common.sh"

mpi_ranks=$where_am_i mpi=$2 contract_ranks=$(realpath "$3") tuttirun=$(realpath "$4")
unset TUTTI_MPI
export TUTTI_BACKEND=mpi TUTTI_SEED=${TUTTI_SEED:-$RANDOM}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A launcher, and the options by which it lets the others live when a rank dies.
case $mpi in
  openmpi)
    mpirun=$(command -v mpirun.openmpi || true)
    launch=("$mpirun" --oversubscribe) tolerant=(--enable-recovery)
    export TMPDIR=$folder ;;
  mpich)
    mpirun=$(command -v mpirun.mpich || true)
    launch=("$mpirun") tolerant=(-disable-auto-cleanup) ;;
  openmpi5)  # the newest, which `./dev bench` installs
    mpirun=$(command -v "$source_folder/build/openmpi5/bin/mpirun" || true)
    launch=("$mpirun" --oversubscribe) tolerant=(--enable-recovery)
    export LD_LIBRARY_PATH=$source_folder/build/openmpi5/lib:$source_folder/build/openmpi5/lib/openmpi TMPDIR=$folder
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 ;;
  mpich5)
    mpirun=$(command -v "$source_folder/build/mpich5/bin/mpiexec" || true)
    launch=("$mpirun") tolerant=(-disable-auto-cleanup)
    export LD_LIBRARY_PATH=$source_folder/build/mpich5/lib:$source_folder/build/mpich5/lib/mpich TUTTI_MPI=libmpi.so.12 ;;
  impi | impi-abi)  # Intel MPI, by MPICH's interface and by the standard one
    impi=$source_folder/build/impi
    mpirun=$(command -v "$impi/bin/mpiexec.hydra" || true)
    launch=("$mpirun") tolerant=(-disable-auto-cleanup)
    export I_MPI_ROOT=$impi I_MPI_FABRICS=shm LD_LIBRARY_PATH=$impi/lib
    if [ "$mpi" = impi-abi ]; then export TUTTI_MPI=abi; fi ;;
esac
[ -n "$mpirun" ] || skip "the mpirun of $mpi is not installed"

# ranks NAME COUNT COMMAND…: all ranks must say that they are right.
ranks() {
  local name=$1 count=$2
  shift 2
  run "$name" "${launch[@]}" -n "$count" "$@"
}
