# slurm.sh: srun, in a Slurm cluster of two nodes that lives on loopback as long as this test.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"
export PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd srun sinfo; do need $program; done

# Any process that can read the key can act for any user of this cluster, so it is made for this test.
start_munge() {
  chmod 755 "$folder"
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 600 "$folder/munge.key"
  munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
    --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" --num-threads=1 >"$folder/munged.out" 2>&1 &
  started+=($!)
}

write_configuration() {
  cat >"$folder/slurm.conf" <<END
ClusterName=tutti$$
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldTimeout=60
NodeName=$(hostname) NodeAddr=127.0.0.1 Port=$(free_port) CPUs=8 State=UNKNOWN
NodeName=zz-other NodeAddr=127.0.0.2 Port=$(free_port) CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE MaxTime=5 State=UP
END
  echo "CgroupAutomount=no" >"$folder/cgroup.conf"
  mkdir -p "$folder/state" "$folder/spool.$(hostname)" "$folder/spool.zz-other"
  export SLURM_CONF=$folder/slurm.conf
}

start_cluster() {
  slurmctld -D -c >"$folder/slurmctld.out" 2>&1 &
  started+=($!)
  for node in $(hostname) zz-other; do
    : | slurmd -D -N $node >"$folder/slurmd.$node.out" 2>&1 &   # a pipe: no terminal here is that of its tasks
    started+=($!)
  done
  wait_until_idle
}

wait_until_idle() {
  for _ in $(seq 150); do
    for id in "${started[@]}"; do kill -0 "$id" 2>/dev/null || fail "a daemon of the cluster has ended"; done
    [ "$(timeout 5 sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && return
    sleep 0.2
  done
  fail "the nodes did not become idle: $(timeout 5 sinfo -N 2>&1)"
}

export TUTTI_INTERFACE=lo   # both nodes are on this machine, whatever Slurm believes
start_munge
write_configuration
start_cluster

run one-node srun --mpi=none -N 1 -n 3 --overcommit "$where_am_i" --timeout 60
expect_world one-node 3 "local [0-2] of 3, node 0 of 1; Slurm: met at .*, found by a record in $HOME/.config/tutti/slurm-.*; secret from the key file"
expect_no_notes

run two-nodes srun --mpi=none -N 2 -n 3 --overcommit "$where_am_i" --timeout 60
expect_world two-nodes 3 "local [01] of [12], node [01] of 2; Slurm: met at rank 0's store at 127.0.0.1:31[0-9]+; secret from the key file"

for interface in pmi2 pmix; do
  srun --mpi=list 2>&1 | grep -w $interface >/dev/null || skip "this Slurm has no $interface"
done
rm -rf "$HOME/.config"
run pmi2 srun --mpi=pmi2 -N 2 -n 4 --overcommit "$where_am_i" --timeout 60 --times 2
expect pmi2 8 "local [01] of 2, node [01] of 2; Slurm \(PMI\): met at .*, found by PMI's key-value space; secret from rank 0, through PMI"
# Slurm's PMIx plugin has one folder per machine and step, so that two nodes on one machine are one too many for it.
run pmix srun --mpi=pmix -N 1 -n 4 --overcommit "$where_am_i" --timeout 60 --times 2
expect pmix 8 "local [0-3] of 4, node 0 of 1; Slurm \(PMIx\): met at .*, found by PMIx's key-value space; secret from rank 0, through PMIx"
[ ! -e "$HOME/.config" ] || fail "with PMI there is no need for a key file"

# In a batch script the variables speak of tasks that nobody started.
printf '#!/bin/sh\nexec "%s"\n' "$where_am_i" >"$folder/batch.sh"
run submitted sbatch -N 2 -n 4 --overcommit --wait -o "$folder/batch.out" "$folder/batch.sh"
expect_world batch 1 'alone: a group of one'

# tuttirun finds the nodes of its allocation, and starts an agent on each by srun; the example is a batch script.
tuttirun=$(realpath "$2")
PATH=$(dirname "$tuttirun"):$PATH run allocation sbatch --time 2 --overcommit --wait -o "$folder/job.out" -e "$folder/job.err" \
  "$source_folder/examples/cluster/slurm.sh" "$where_am_i" --timeout 60
for rank in 0 1 2 3; do expect job 1 "^\[$(hostname):$rank\] rank $rank of 8: .*tuttirun"; done
for rank in 4 5 6 7; do expect job 1 "^\[zz-other:$rank\] rank $rank of 8: .*tuttirun"; done
expect_error job 'tuttirun: Slurm job [0-9]+: 2 nodes$'
# A node whose agent dies ends the job there, too, and the allocation is free again.
printf '#!/bin/sh\nexec "%s" -n 2 sh -c "[ \\$RANK != 3 ] || exit 5; sleep 300"\n' "$tuttirun" >"$folder/fails.sh"
status=0
sbatch -N 2 -n 4 --overcommit --wait -o "$folder/fails.out" -e "$folder/fails.err" "$folder/fails.sh" >/dev/null || status=$?
[ "$status" = 5 ] || fail "fails: $status instead of 5"
expect_error fails 'rank 3 of 4 \(sh, process [0-9]+ on zz-other\) exited with status 5'
wait_until_idle

# The debugger on one rank of a step.
if [ -n "${TUTTI_PYTHON:-}" ]; then
  run breakpoint "$TUTTI_PYTHON" "$source_folder/tests/launchers/breakpoint_under_srun.py" "$folder"
  wait_until_idle   # a daemon that still clears up after a step does not end when told to
fi
