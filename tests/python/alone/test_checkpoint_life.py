# test_checkpoint_life.py: checkpoints written by four processes and read by three; a process killed in the middle.
# SPDX-License-Identifier: Apache-2.0
COMMON = """
import os, sys
import numpy as np
import tutti
from tutti.checkpoint import Sharded, load, save

world = tutti.init(timeout=30)
whole = np.arange(70.0).reshape(10, 7)
mine = np.array_split(whole, world.size)[world.rank]
folder = sys.argv[1]
"""

SAVE = COMMON + """
save(folder, {"x": Sharded(mine, 10), "step": 1})
"""

LOAD = COMMON + """
found = load(folder, like={"x": Sharded(mine, 10), "step": 0})
assert (found["x"] == mine).all() and found["step"] == 1, found
assert (load(folder)["x"] == whole).all()
print("all there")
"""

DIE = COMMON + """
if world.rank == 1:
    os.fsync = lambda file: os.kill(os.getpid(), 9)
save(folder, {"x": Sharded(-mine, 10), "step": 2})
"""


def test_four_write_and_three_read(run_ranks, tmp_path):
    folder = tmp_path / "checkpoint"
    saved = run_ranks(4, SAVE, folder)
    assert saved.returncode == 0, saved.stderr
    for ranks in (3, 1):
        loaded = run_ranks(ranks, LOAD, folder)
        assert loaded.returncode == 0 and loaded.stdout.count("all there") == ranks, loaded.stdout + loaded.stderr


def test_a_process_killed_in_the_middle_leaves_the_last_good_one(run_ranks, tmp_path):
    folder = tmp_path / "checkpoint"
    assert run_ranks(2, SAVE, folder).returncode == 0
    assert run_ranks(2, DIE, folder).returncode != 0
    loaded = run_ranks(2, LOAD, folder)
    assert loaded.returncode == 0, loaded.stdout + loaded.stderr
    assert run_ranks(2, SAVE, folder).returncode == 0
    assert len(list(folder.iterdir())) == 2  # what the killed one left is gone


FORGE = COMMON + """
import json, pathlib, shutil

save(folder, {"x": whole})
outside = pathlib.Path(folder).parent / "outside"
data = next(pathlib.Path(folder).glob("data-*"))
shutil.copytree(data, outside)
index_file = pathlib.Path(folder, "index.json")
true = index_file.read_text()
part = next(data.iterdir()).name
assert part in true and data.name in true


def refused(index, word):
    index_file.write_text(index)
    try:
        load(folder)
    except tutti.Error as error:
        assert word in str(error), error
    else:
        raise SystemExit(f"{index} was followed")


for name in (f"../../outside/{part}", str(outside / part), "..", ""):
    refused(true.replace(f'"{part}"', json.dumps(name)), "forged")
for name in ("../outside", str(outside), "."):
    refused(true.replace(f'"{data.name}"', json.dumps(name)), "forged")
(data / part).unlink()
(data / part).symlink_to(outside / part)
refused(true, "symbolic link")
print("all refused")
"""


def test_a_forged_index_does_not_lead_out_of_the_checkpoint(run_ranks, tmp_path):
    done = run_ranks(1, FORGE, tmp_path / "checkpoint")
    assert done.returncode == 0 and "all refused" in done.stdout, done.stdout + done.stderr
