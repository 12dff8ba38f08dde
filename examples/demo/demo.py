# demo.py: what is special, in two minutes: one job on one process and on two ranks, a mismatch, a killed rank, a page about it.
# SPDX-License-Identifier: Apache-2.0
"""python demo.py [--ranks 2] [--build build/release] [--page demo.html]

The report that `tutti report` makes of the killed job is written beside the page: demo-report.html."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import page

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
DIGITS = HERE.parent / "digits"
# One core for each rank, and one for the single process: what more ranks bring is then what more cores bring. Without this
# the BLAS of every rank takes all cores, and they get in each other's way.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "NO_COLOR": "1"} | {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release", help="where ./dev build put the programs")
    parser.add_argument("--page", type=Path, default=Path("demo.html"))
    parser.add_argument("--epochs", type=int, default=12)
    o = parser.parse_args()
    tuttirun = o.build / "src/launch/tuttirun"
    runs = train(o, tuttirun)
    furthest = difference(runs)
    summary(runs, furthest)
    with tempfile.TemporaryDirectory() as folder:
        scenes = show_scenes(o, tuttirun, Path(folder))
    o.page.write_text(page.page(runs, scenes, furthest))
    print(f"\nAll of this with plots: {o.page.resolve().as_uri()}")
    return 0 if furthest < 1e-3 and all(each["as_expected"] for each in scenes) else 1


def show_scenes(o: argparse.Namespace, tuttirun: Path, folder: Path) -> list[dict]:
    """A mismatch, a killed rank, and, where this build has `tutti report`, what that says of the killed one."""
    help_text = subprocess.run([tuttirun, "--help"], check=True, timeout=30, capture_output=True, text=True).stdout
    traced = ["--trace", folder / "calls"] if "--trace" in help_text else []
    scenes = [
        scene("Rank 1 passes another array", "Every call is compared. Both ranks raise, before anything is added up.",
              [tuttirun, "-n", "2", "python", HERE / "mismatch.py"], "Mismatch: "),
        scene("Rank 1 is killed", "Nobody waits for it: rank 0 is told who it was and how it ended, and goes on alone.",
              [tuttirun, "-n", "2", "--keep-going", *traced, "python", HERE / "killed.py"], "PeerLost: "),
    ]
    if traced:
        report = o.page.resolve().with_name(f"{o.page.stem}-report.html")
        scenes.append(scene("What the report says", f"Every call was written down, those of the killed rank, too: {report.as_uri()}",
                            [o.build / "src/cli/tutti", "report", folder / "calls", "-o", report], ""))
    return scenes


def title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def train(o: argparse.Namespace, tuttirun: Path) -> dict[str, dict]:
    """The same training three times: its curve, seconds and share of communication, by name."""
    on_ranks = [tuttirun, "-n", str(o.ranks), "--no-prefix"]
    numpy_program = [sys.executable, DIGITS / "train_numpy.py"]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "digits.bin", Path(folder) / "curve.json"
        subprocess.run([sys.executable, DIGITS / "digits.py", data], check=True, env=ENVIRONMENT)
        programs = {
            "NumPy, one process": numpy_program,
            f"NumPy, {o.ranks} ranks": [*on_ranks, *numpy_program],
            f"C++, {o.ranks} ranks": [*on_ranks, o.build / "examples/digits/digits", data],
        }
        for name, command in programs.items():
            title(f"{name} learn{'s' if 'one' in name else ''} 12 933 images of digits, one core each")
            words = [*map(str, command), "--epochs", str(o.epochs), "--curve", str(out)]
            subprocess.run(words, check=True, env=ENVIRONMENT, timeout=300)
            found[name] = json.loads(out.read_text())
    return found


def difference(runs: dict[str, dict]) -> float:
    """By how much the curves differ at most, as a part of the loss at the beginning."""
    first, *others = (np.array(run["losses"]) for run in runs.values())
    return max(float(np.abs(other - first).max()) for other in others) / first[0]


def summary(runs: dict[str, dict], furthest: float) -> None:
    title("The same job, told apart only by the time it takes")
    for name, run in runs.items():
        print(f"  {name:20} {run['seconds']:5.1f} s, {run['communication']:4.1f} % of them in communication, {run['waiting']:4.1f} % waiting; "
              f"accuracy {100 * run['accuracy']:.1f} %")
    print(f"  The loss curves differ by {100 * furthest:.4f} % at most.")
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores + 1:
        print(f"  (This machine is busy, with a load of {load:.0f} on {cores} cores: a rank that has no core keeps the others waiting.)")


def scene(name: str, what: str, command: list, expected: str) -> dict:
    """Runs a program in which something goes wrong; what it printed, and whether that names what went wrong."""
    words = [sys.executable if word == "python" else str(word) for word in command]
    shown = " ".join(word.name if isinstance(word, Path) else word for word in command)
    title(name)
    print(f"  {what}\n$ {shown}", flush=True)
    done = subprocess.run(words, env=ENVIRONMENT, timeout=60, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, end="", flush=True)
    as_expected = done.returncode == 0 and expected in done.stdout
    return {"name": name, "what": what, "command": shown, "output": done.stdout, "as_expected": as_expected}


if __name__ == "__main__":
    sys.exit(main())
