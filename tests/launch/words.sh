# words.sh: what ranks are told, torchrun's words, Python programs, and mistakes: a clear message and status 2.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"

show='echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_ADDR ${#TUTTI_SECRET} $OMP_NUM_THREADS'
launch env 0 -n 2 bash -c "$show"
expect env 1 '^\[1\] 1/2 1/2 0/1 127.0.0.1 64 [0-9]+$'
launch torchrun 0 --standalone --nnodes=1 --nproc_per_node=2 --master_port 0 bash -c "$show"
expect torchrun 1 '^\[0\] 0/2 0/2 0/1 127.0.0.1 64 [0-9]+$'
OMP_NUM_THREADS=5 launch threads 0 -n 1 -x NPROC=3 -B native bash -c 'echo $OMP_NUM_THREADS $NPROC $TF_NUM_INTRAOP_THREADS $TUTTI_BACKEND'
expect threads 1 '^\[0\] 5 3 [0-9]+ native$'
OMPI_COMM_WORLD_SIZE=9 PMI_FD=3 TORCHELASTIC_RUN_ID=x launch inside 0 -n 1 bash -c 'echo ${OMPI_COMM_WORLD_SIZE-none} ${PMI_FD-none} ${TORCHELASTIC_RUN_ID-none}'
expect inside 1 'none none none'
launch arguments 0 -n 1 printf '%s|' 'a b' -n '' --quiet
expect arguments 1 '^\[0\] a b\|-n\|\|--quiet\|$'

mkdir -p "$folder/package" "$folder/venv/bin"
echo 'import os, sys; print("python", os.environ["RANK"], sys.argv[1:])' >"$folder/program.py"
touch "$folder/package/__init__.py"
cp "$folder/program.py" "$folder/package/module.py"
launch python 0 -n 2 "$folder/program.py" --its own
expect python 1 "^\[1\] python 1 \['--its', 'own'\]$"
PYTHONPATH=$folder launch module 0 -n 1 -m package.module x
expect module 1 "python 0 \['x'\]"
printf '#!/bin/sh\necho the environment has its own python: "$@"\n' >"$folder/venv/bin/python"
chmod +x "$folder/venv/bin/python"
VIRTUAL_ENV=$folder/venv launch venv 0 -n 1 "$folder/program.py"
expect venv 1 'has its own python: -u .*/program.py'

launch dry 0 -n 2 --dry-run "$folder/rank" 'two words'
expect dry 1 "^program: .*/rank 'two words'\$"
expect dry 1 '^  RANK=1 LOCAL_RANK=1$'
if grep -Eq '[0-9a-f]{64}' "$folder/dry.out"; then fail "--dry-run shows the secret"; fi
launch help 0 --help
expect help 1 '^Examples'

# mistake NAME PATTERN ARGUMENTS…
mistake() {
  local name=$1 pattern=$2
  shift 2
  launch "$name" 2 "$@"
  expect_last "$name" "^tuttirun: .*$pattern"
  [ ! -s "$folder/$name.out" ] || fail "$name: something was printed to standard output"
}
mistake unknown 'there is no option --time-out; did you mean --timeout\?' --time-out 3 true
mistake nothing 'no program' -n 2
mistake missing 'there is no such program in PATH' -n 2 no-such-program-anywhere
mistake missing-path 'there is no such file' -n 2 "$folder/no-such-program"
mistake missing-python 'there is no such file' -n 2 "$folder/missing.py"
mistake folder 'it is a folder' -n 2 "$folder/package"
touch "$folder/plain"
mistake plain 'it is not executable; chmod \+x' -n 2 "$folder/plain"
echo text >"$folder/text" && chmod +x "$folder/text"
mistake format 'could not be started: .*Exec format error; a script needs a first line' -n 2 "$folder/text"
mistake slots '16384 ranks, but only [0-9]+ cores? to bind|without hwloc' -n 16384 --bind core true
mistake count 'takes a number' -n none true
mistake logs 'log-dir' --log-dir /proc/nowhere true
mistake nodes 'started by hand on each node' --nnodes 2 true
mistake secret 'need a secret in common; set TUTTI_SECRET' --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 --master-port 29500 -n 1 true
TUTTI_SECRET=short mistake short-secret 'TUTTI_SECRET' -n 1 true

# A port in use: python holds one until its standard input closes.
coproc holder { exec python3 -u -c 'import socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1]); sys.stdin.read()'; }
read -r port <&"${holder[0]}"
mistake port "port $port.* in use|$port: the port is in use" --master-port "$port" true
exec {holder[1]}>&-
wait "$holder_PID"
