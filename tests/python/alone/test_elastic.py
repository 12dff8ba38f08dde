# test_elastic.py: jobs whose ranks are killed end with the numbers of one that was left alone.
# SPDX-License-Identifier: Apache-2.0
import re

import pytest

pytestmark = pytest.mark.deadline(600)  # many processes that import frameworks, one after the other

# Linear regression on data that the step decides; the rank that KILLS names dies in that step of that round: "round:step:rank".
PROGRAM = """
import os, signal, sys
import numpy as np
import tutti, tutti.elastic

framework, folder = sys.argv[1:3]
kills = dict(text.split(":", 1) for text in sys.argv[3:])
STEPS, truth = 20, np.array([1.0, -2.0, 0.5, 3.0])


def batch(step, rank):
    random = np.random.default_rng((step, rank))
    x = random.normal(size=(8, 4))
    return x, x @ truth


def maybe_die(job, step):
    at, rank = kills.get(str(job.restart), "-1:-1").split(":")
    if (int(at), int(rank)) == (step, job.world.rank):
        os.kill(os.getpid(), signal.SIGKILL)


def numpy_steps(job):
    state = job.load({"w": np.zeros(4), "step": 0})
    w = state["w"]
    for step in range(state["step"], STEPS):
        maybe_die(job, step)
        x, y = batch(step, job.world.rank)
        w = w - 0.05 * tutti.all_reduce(2 * x.T @ (x @ w - y) / len(y), "mean")
        job.save({"w": w, "step": step + 1})
    return w


def torch_steps(job):
    import torch

    model = torch.nn.Linear(4, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    state = job.load({"model": model.state_dict(), "optimizer": np.zeros(4), "step": 0})
    model.load_state_dict(state["model"])
    momentum = torch.as_tensor(state["optimizer"])[None]
    optimizer.state[model.weight]["momentum_buffer"] = momentum.clone()
    for step in range(state["step"], STEPS):
        maybe_die(job, step)
        x, y = (torch.as_tensor(part) for part in batch(step, job.world.rank))
        optimizer.zero_grad()
        ((model(x)[:, 0] - y) ** 2).mean().backward()
        model.weight.grad = tutti.all_reduce(model.weight.grad, "mean")
        optimizer.step()
        kept = optimizer.state[model.weight]["momentum_buffer"].numpy()[0]
        job.save({"model": model.state_dict(), "optimizer": kept, "step": step + 1})
    return model.weight.detach().numpy()[0]


def jax_steps(job):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def update(w, x, y):
        gradient = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        return w - 0.05 * tutti.all_reduce(gradient, "mean")

    state = job.load({"w": jnp.zeros(4), "step": 0})
    w = state["w"]
    for step in range(state["step"], STEPS):
        maybe_die(job, step)
        x, y = batch(step, job.world.rank)
        w = jax.block_until_ready(update(w, jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)))
        job.save({"w": w, "step": step + 1})
    return np.asarray(w)


def tensorflow_steps(job):
    import tensorflow as tf

    @tf.function
    def update(w, x, y):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_mean((tf.linalg.matvec(x, w) - y) ** 2)
        return w - 0.05 * tutti.all_reduce(tape.gradient(loss, w), "mean")

    state = job.load({"w": tf.zeros(4, tf.float64), "step": 0})
    w = state["w"]
    for step in range(state["step"], STEPS):
        maybe_die(job, step)
        w = update(w, *(tf.constant(part) for part in batch(step, job.world.rank)))
        job.save({"w": w, "step": step + 1})
    return w.numpy()


w = tutti.elastic.run(globals()[framework + "_steps"], folder)
print("process", os.getpid(), "rank", tutti.rank(), "of", tutti.size(), "restart", os.environ["TUTTI_RESTART"],
      "ends with", " ".join(f"{value:.12f}" for value in w))
"""
KILLS = ("0:3:1", "1:3:0", "2:11:1")


def losses(done):
    lines = re.findall(r"process (\d+) rank (\d) of (\d) restart (\d) ends with (.*)", done.stdout)
    assert done.returncode == 0 and lines, done.stdout + done.stderr
    return {line[4] for line in lines}, lines


def train(run_ranks, tmp_path, framework, name, *words, options=()):
    return run_ranks(2, PROGRAM, framework, tmp_path / name, *words, options=options, timeout=500)


def check(run_ranks, tmp_path, framework, mode):
    alone, _ = losses(train(run_ranks, tmp_path, framework, "alone"))
    options = ["--restarts", "3"] if mode == "restarts" else ["--elastic", "2:2"]
    mended, lines = losses(train(run_ranks, tmp_path, framework, "mended", *KILLS, options=options))
    assert len(alone) == 1 and mended == alone
    assert [line[3] for line in lines] == ["3", "3"], lines


@pytest.mark.parametrize("mode", ["restarts", "elastic"])
def test_three_kills_leave_the_numbers_as_they_are(run_ranks, tmp_path, mode):
    check(run_ranks, tmp_path, "numpy", mode)


@pytest.mark.soak
@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_three_kills_in_a_framework(run_ranks, tmp_path, framework):
    check(run_ranks, tmp_path, framework, "elastic")


@pytest.mark.soak
@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_three_kills_and_whole_restarts_in_a_framework(run_ranks, tmp_path, framework):
    check(run_ranks, tmp_path, framework, "restarts")


def test_a_framework_goes_on_after_a_kill(run_ranks, tmp_path):
    done = train(run_ranks, tmp_path, "torch", "torch", "0:3:1", options=["--elastic", "2"])
    found, lines = losses(done)
    assert len(found) == 1 and [line[3] for line in lines] == ["1", "1"]


def test_survivors_keep_their_process(run_ranks, tmp_path):
    done = train(run_ranks, tmp_path, "numpy", "kept", "0:5:1", options=["--elastic", "2"])
    _, lines = losses(done)
    replaced = re.search(r"process (\d+) was killed by signal 9", done.stderr)[1]
    assert replaced not in {line[0] for line in lines} and "round 1: it is replaced, 2 ranks" in done.stderr


FEWER = """
import os, signal
import numpy as np
import tutti, tutti.elastic


def train(job):
    state = job.load({"sum": np.zeros(2), "step": 0})
    for step in range(state["step"], 6):
        if job.world.size == 3 and job.world.rank == 0 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        state = {"sum": state["sum"] + tutti.all_reduce(np.ones(2)), "step": step + 1}
        job.save(state)
    return state["sum"]


total = tutti.elastic.run(train, os.environ["FOLDER"])
print(tutti.rank(), "of", tutti.size(), total)
"""


def test_without_replacements_the_others_go_on(run_ranks, tmp_path):
    done = run_ranks(3, FEWER, timeout=300, options=["--elastic", "2", "--restarts", "0"], env={"FOLDER": str(tmp_path / "run")})
    assert done.returncode == 0, done.stdout + done.stderr
    # Three steps of three ranks, and three of two; the lines are numbered as the job was started.
    assert sorted(done.stdout.splitlines()) == ["[1] 0 of 2 [15. 15.]", "[2] 1 of 2 [15. 15.]"], done.stderr
    few = run_ranks(3, FEWER, timeout=300, options=["--elastic", "3", "--restarts", "0"], env={"FOLDER": str(tmp_path / "few")})
    assert few.returncode == 137 and "was killed by signal 9" in few.stderr.splitlines()[-1], few.stderr


FENCED = """
import os, signal, subprocess, sys, time
import numpy as np
import tutti, tutti.elastic


def train(job):
    if job.restart == 0 and job.world.rank == 1:
        # What a slow process would try: to come back with all that it knew of the round that is over.
        late = dict(os.environ, TUTTI_SECRET=os.environ["KEPT"])
        with open(os.environ["FOLDER"] + "/late", "w") as out:
            subprocess.Popen([sys.executable, __file__, "late"], env=late, stdout=out, stderr=out, start_new_session=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return tutti.all_reduce(np.ones(1))


os.environ.setdefault("KEPT", os.environ.get("TUTTI_SECRET", ""))
if sys.argv[1:] == ["late"]:
    tutti.init(timeout=20)
    print("joined")
else:
    print(tutti.elastic.run(train, os.environ["FOLDER"] + "/run"))
"""


def test_what_is_left_of_a_lost_rank_ends_before_it_is_replaced(run_ranks, tmp_path):
    done = run_ranks(2, FENCED, timeout=300, options=["--elastic", "2"], env={"FOLDER": str(tmp_path)})
    assert done.returncode == 0 and done.stdout.count("[2.]") == 2, done.stdout + done.stderr
    assert "joined" not in (tmp_path / "late").read_text()


def test_an_error_of_the_program_ends_the_job_when_restarts_are_used_up(run_ranks):
    program = "import tutti, tutti.elastic\ndef train(job):\n    raise ValueError('a mistake')\ntutti.elastic.run(train)\n"
    done = run_ranks(2, program, timeout=300, options=["--elastic", "2", "--restarts", "2"])
    assert done.returncode == 1 and "ValueError: a mistake" in done.stderr, done.stderr
