# cluster_files.py: examples/cluster by the validators of those who define the formats.
# SPDX-License-Identifier: Apache-2.0
"""cluster_files.py FOLDER TUTTIRUN

There is no validator of JobSet's own outside of a cluster; the Job that it makes is checked as Kubernetes would, and the fields
around it by name. The variables of each pod and container are then given to tuttirun, which must find its node in them."""
import pathlib
import re
import subprocess
import sys

import compose_spec
import kubernetes_validate
import yaml

folder, tuttirun = pathlib.Path(sys.argv[1]), sys.argv[2]
SECRET = "ab" * 32


def finds_its_node(variables, node, nodes):
    environment = {"PATH": "/usr/bin:/bin", "TUTTI_SECRET": SECRET, **variables}
    done = subprocess.run([tuttirun, "--dry-run", "-n", "2", "true"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and f"node {node} of {nodes}" in done.stderr, (done.stdout, done.stderr)
    assert f"RANK={2 * node}" in done.stdout, done.stdout


# compose_spec knows no variables of the shell, which Compose puts in first.
text = (folder / "compose.yaml").read_text()
text = re.sub(r"\$\{TUTTI_SECRET:\?[^}]*\}", SECRET, re.sub(r"\$\{TUTTI_IMAGE:-([^}]*)\}", r"\1", text))
compose_spec.PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(text)))
services = yaml.safe_load(text)["services"]
for node, name in enumerate(sorted(services)):
    assert services[name]["environment"]["MASTER_ADDR"] == "node-0" in services
    finds_its_node(services[name]["environment"], node, len(services))

jobset = yaml.safe_load((folder / "jobset.yaml").read_text())
assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
assert set(jobset["spec"]) == {"network", "failurePolicy", "replicatedJobs"}
for replicated in jobset["spec"]["replicatedJobs"]:
    assert set(replicated) == {"name", "replicas", "template"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": replicated["name"]}, **replicated["template"]}
    kubernetes_validate.validate(job, "1.37", strict=True)
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    variables = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    assert variables["NNODES"] == str(spec["completions"]) == str(spec["parallelism"])
    assert variables["MASTER_ADDR"] == f"{jobset['metadata']['name']}-{replicated['name']}-0-0.{jobset['metadata']['name']}"
    for index in range(spec["completions"]):
        finds_its_node({**variables, "JOB_COMPLETION_INDEX": str(index)}, index, spec["completions"])
print("cluster files: all well")
