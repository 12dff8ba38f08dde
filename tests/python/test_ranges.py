# test_ranges.py: calls are ranges of the profilers of frameworks.
# SPDX-License-Identifier: Apache-2.0
import gzip

import numpy as np
import pytest
import tutti


def test_torchs_profiler_shows_calls(world, size):
    torch = pytest.importorskip("torch")
    x = torch.ones(3)
    tutti.all_reduce(x)  # before: nobody looks on
    with torch.profiler.profile() as profile:
        tutti.all_reduce(x)
        tutti.all_reduce([x, x])
        tutti.broadcast(np.ones(3))
        tutti.all_reduce(x, async_op=True).wait()
        tutti.sendrecv(x, dst=(world.rank + 1) % size, src=(world.rank - 1) % size)
        tutti.barrier()
    tutti.all_reduce(x)
    names = [event.name for event in profile.events() if event.name.startswith("tutti.")]
    assert sorted(names) == sorted(["tutti.all_reduce"] * 3 + ["tutti.broadcast", "tutti.wait", "tutti.sendrecv", "tutti.barrier"])


def test_a_call_that_fails_ends_its_range(world):
    torch = pytest.importorskip("torch")
    with torch.profiler.profile() as profile:
        for _ in range(2):
            with pytest.raises(tutti.InvalidArgument):
                tutti.broadcast(torch.ones(3), root=77)
    assert [event.name for event in profile.events()].count("tutti.broadcast") == 2


def test_jaxs_profiler_shows_calls(tmp_path):
    jnp = pytest.importorskip("jax.numpy")
    import jax

    x = jnp.ones(3)
    with jax.profiler.trace(str(tmp_path), create_perfetto_trace=True):
        tutti.all_reduce(x).block_until_ready()
    shown = gzip.open(next(tmp_path.rglob("perfetto_trace.json.gz"))).read()
    assert b"tutti.all_reduce" in shown
