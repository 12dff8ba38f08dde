# ray.sh: ranks as actors of a real Ray cluster of one node, in an environment of its own (build/ray).
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"
environment=$source_folder/build/ray/bin
[ -x "$environment/ray" ] || skip "Ray is not in build/ray: ./dev test launchers installs it"
ls "$source_folder"/python/tutti/_native.cpython-"$("$environment/python" -c 'import sys; print("%d%d" % sys.version_info[:2])')"-*.so >/dev/null 2>&1 ||
  skip "the Python package was not built for $("$environment/python" --version)"
export PYTHONPATH=$source_folder/python RAY_USAGE_STATS_ENABLED=0 RAY_DISABLE_IMPORT_WARNING=1 RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0
port=$(free_port)
"$environment/ray" start --head --port "$port" --num-cpus 3 --num-gpus 0 --node-ip-address 127.0.0.1 --include-dashboard=false \
  --object-store-memory 80000000 --temp-dir "$folder/ray" --disable-usage-stats >"$folder/start.out" 2>&1 || fail "Ray does not start"
status=0
timeout 500 "$environment/python" "$source_folder/tests/launchers/placed.py" ray "127.0.0.1:$port" >"$folder/ray.out" 2>"$folder/ray.err" || status=$?
# Not `ray stop`, which ends those of others, too; they end on SIGTERM only when they get to it.
for id in $(descendants); do [ "$id" = $$ ] || kill -9 "$id" 2>/dev/null || true; done
wait 2>/dev/null
[ "$status" = 0 ] || fail "status $status"
expect ray 1 '^ray: all well$'
expect ray 1 '^\[.*:1\] rank 1 of 3$'
echo "ray: all well"
