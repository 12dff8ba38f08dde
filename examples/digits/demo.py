# demo.py: learns the digits on one process and on several ranks, in NumPy and C++, and shows that the curves are one.
# SPDX-License-Identifier: Apache-2.0
"""python demo.py [--ranks 2] [--build build/release] [--picture digits.svg]"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import draw
import numpy as np

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release", help="where ./dev build put the programs")
    parser.add_argument("--picture", type=Path, default=Path("digits.svg"))
    o = parser.parse_args()
    tuttirun, program = o.build / "src/launch/tuttirun", o.build / "examples/digits/digits"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "digits.bin"
        subprocess.run([sys.executable, HERE / "digits.py", data], check=True)
        numpy_program = [sys.executable, HERE / "train_numpy.py"]
        runs = {
            "NumPy, one process": [*numpy_program],
            f"NumPy, {o.ranks} ranks": [tuttirun, "-n", str(o.ranks), *numpy_program],
            f"C++, {o.ranks} ranks": [tuttirun, "-n", str(o.ranks), program, data],
        }
        curves = {}
        for name, command in runs.items():
            print(f"\n{name}", flush=True)
            out = Path(folder) / "curve.json"
            subprocess.run([*map(str, command), "--curve", str(out)], check=True, env=environment, timeout=300)
            curves[name] = json.loads(out.read_text())["losses"]
    o.picture.write_text(draw.picture({name: draw.smoothed(losses) for name, losses in curves.items()}))
    alone = np.array(curves["NumPy, one process"])
    furthest = max(float(np.abs(np.array(losses) - alone).max()) for losses in curves.values())
    print(f"\nThe curves differ by {furthest:.1e} at most; {o.picture} shows them.")
    return 0 if furthest < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
