# cluster.sh: the files of examples/cluster are what Compose and Kubernetes take, and tuttirun finds its node by them. The script for
# Slurm is run in slurm.sh.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/common.sh"
environment=$source_folder/build/cluster/bin
[ -x "$environment/kubernetes-validate" ] || skip "the validators are not in build/cluster: ./dev test launchers installs them"
run cluster "$environment/python" "$source_folder/tests/launchers/cluster_files.py" "$source_folder/examples/cluster" "$2"
expect cluster 1 'all well$'
bash -n "$source_folder/examples/cluster/slurm.sh"
echo "cluster: all well"
