# dask.sh: ranks in the workers of a real Dask cluster, processes of an environment of its own (build/dask).
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"
environment=$source_folder/build/dask/bin
[ -x "$environment/dask" ] || skip "Dask is not in build/dask: ./dev test launchers installs it"
ls "$source_folder"/python/tutti/_native.cpython-"$("$environment/python" -c 'import sys; print("%d%d" % sys.version_info[:2])')"-*.so >/dev/null 2>&1 ||
  skip "the Python package was not built for $("$environment/python" --version)"
export PYTHONPATH=$source_folder/python
port=$(free_port)
cd "$folder"
"$environment/dask" scheduler --host 127.0.0.1 --port "$port" --no-dashboard >"$folder/scheduler.out" 2>&1 &
started+=($!)
for worker in 0 1 2; do
  "$environment/dask" worker "tcp://127.0.0.1:$port" --nthreads 1 --no-dashboard --name "w$worker" --local-directory "$folder/w$worker" \
    >"$folder/worker$worker.out" 2>&1 &
  started+=($!)
done
run dask timeout 500 "$environment/python" "$source_folder/tests/launchers/placed.py" dask "tcp://127.0.0.1:$port"
# Workers that lose their scheduler wait for another one. Python's trackers stay: they remove the semaphores of those that are killed.
for id in $(descendants); do
  if [ "$id" = $$ ] || grep -q resource_tracker "/proc/$id/cmdline" 2>/dev/null; then continue; fi
  kill -9 "$id" 2>/dev/null || true
done
wait 2>/dev/null
expect dask 1 '^dask: all well$'
expect dask 1 '^\[.*:1\] rank 1 of 3$'
echo "dask: all well"
