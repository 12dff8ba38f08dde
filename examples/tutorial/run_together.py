# run_together.py: several programs of this folder one after the other in the same ranks: frameworks are imported once.
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 2 --no-prefix run_together.py NAME…     prints "== NAME" before what each rank prints"""
import contextlib
import io
import runpy
import sys
from pathlib import Path

import tutti

world = tutti.init()
for name in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(Path(__file__).with_name(name)), run_name="__main__")
    for text in tutti.all_gather_object(said.getvalue()) if world.size > 1 else [said.getvalue()]:
        if world.rank == 0:
            print(f"== {name}", text, sep="\n", flush=True)
