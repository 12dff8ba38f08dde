#!/bin/bash
# slurm.sh: a training job in Slurm: sbatch examples/cluster/slurm.sh train.py
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=tutti
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
#SBATCH --output=tutti-%j.out
#SBATCH --open-mode=append

# tuttirun finds the nodes and the tasks per node of the allocation, and starts its agents by srun. A job that fails is started again
# in the same allocation, and goes on from its last checkpoint (docs/elastic.md).
exec tuttirun --restarts 3 "${@:?give the program and its arguments}"

# Without tuttirun, one step of srun does as well: the ranks find each other by Slurm's own variables.
#   srun program
