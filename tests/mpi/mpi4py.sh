# mpi4py.sh: jobs on communicators of mpi4py, in one process with its own calls.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/mpi_common.sh"

[ -z "${TUTTI_SKIP_MPI4PY:-}" ] || skip "$TUTTI_SKIP_MPI4PY"
python=${TUTTI_PYTHON:-$source_folder/.venv/bin/python}
"$python" -c 'import mpi4py, numpy' 2>/dev/null || skip "mpi4py is not installed"
ls "$source_folder"/python/tutti/_native*.so >/dev/null 2>&1 || skip "the Python module is not built"
export PYTHONPATH=$source_folder/python
if [[ $mpi = openmpi* ]]; then
  export MPI4PY_MPIABI=openmpi
else  # mpi4py looks for MPICH under the name that its developers agreed on; Debian has another one
  export MPI4PY_MPIABI=mpich LD_LIBRARY_PATH=$folder/lib
  mkdir "$folder/lib"
  ln -s "$(ldconfig -p | sed -n 's/.*libmpich.so.12 .*=> //p' | head -n 1)" "$folder/lib/libmpi.so.12"
fi
unset TUTTI_BACKEND
for backend in auto mpi; do
  ranks "mpi4py-$backend" 4 "$python" "$(dirname "$0")/on_communicator.py" "$backend"
  expect "mpi4py-$backend" 4 '^rank [0-3]: right$'
  # The other way round: Tutti first, then MPI.
  ranks "init-first-$backend" 3 "$python" "$(dirname "$0")/init_first.py" "$backend"
  expect "init-first-$backend" 3 '^rank [0-2]: right$'
done
