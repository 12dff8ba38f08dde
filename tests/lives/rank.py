# rank.py: what one rank does in its life, and what it notes of it. Every step is a method.
# SPDX-License-Identifier: Apache-2.0
import atexit
import contextlib
import gc
import json
import os
import pathlib
import signal
import sys
import threading
import time

import numpy as np

import tutti
from basis import CALL_SECONDS, CHILD_SECONDS, Wrong
from draw import LEAVERS
from handlers import HandlerSteps

NEVER_TAG = 9999


class ChildEnds(BaseException):
    """Ends the interpreter of a forked child: no step may take it for its own."""


class Rank(HandlerSteps):
    def __init__(self, life, rank, folder):
        self.life, self.rank, self.size = life, rank, life["size"]
        self.folder = pathlib.Path(folder)
        self.notes = open(self.folder / f"rank-{rank}.jsonl", "w")
        self.pid = os.getpid()
        self.joins = 0
        self.guarded = []  # memory that calls gave back: array, and what it must stay

    # The frame: every step, then the ending.

    def live(self):
        if self.go_through_steps():
            self.end(self.life["endings"][self.rank])

    def go_through_steps(self):
        went_well = self.note(-1, self.join)
        for index, step in enumerate(self.life["steps"]):
            self.index, self.step = index, step
            # After a failure, what follows would only repeat it.
            went_well = went_well and self.note(index, getattr(self, step["do"]))
        self.index, self.step = len(self.life["steps"]), {"seed": 1, "count": 100}
        self.mark(f"-rank-{self.rank}")
        return went_well

    def note(self, index, do):
        """Whether the world is still to be used."""
        begin = time.monotonic()
        record = {"step": index, "result": "fine", "named": True, "text": "", "go_on": True}
        try:
            record |= do() or {}
            self.check_guarded()
        except Wrong as wrong:
            record |= {"result": "wrong", "rule": wrong.rule, "text": str(wrong), "go_on": False}
        except Exception as error:
            record |= self.described(error) | {"go_on": False}
        record["seconds"] = time.monotonic() - begin
        self.notes.write(json.dumps(record) + "\n")
        self.notes.flush()
        return record["go_on"]

    def join(self):
        self.joins += 1
        method = f"file://{self.folder}/meeting-{self.joins}"
        self.world = tutti.init(backend=self.life["backend"], init_method=method, rank=self.rank, size=self.size,
                                timeout=CALL_SECONDS)

    # The steps.

    def collective(self):
        if self.step["threads"][self.rank]:
            self.in_thread(self.make_collective)
        else:
            self.make_collective()

    @staticmethod
    def in_thread(call):
        errors = []

        def body():
            try:
                call()
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]

    def make_collective(self):
        verb, everyone = self.step["verb"], range(self.size)
        options = {"async_op": True} if self.step["async"][self.rank] else {}
        mine = self.values(self.rank)
        rows = np.stack([self.values(self.rank, to) for to in everyone])  # one row for each rank
        root = self.step["peer"]
        calls = {
            "all_reduce": (lambda: tutti.all_reduce(mine, **options), lambda: self.sum_of_all()),
            "broadcast": (lambda: tutti.broadcast(mine, root, **options), lambda: self.values(root)),
            "all_gather": (lambda: tutti.all_gather(mine, axis=None, **options),
                           lambda: np.stack([self.values(rank) for rank in everyone])),
            "reduce_scatter": (lambda: tutti.reduce_scatter(rows, axis=None, **options), lambda: self.sum_of_all(self.rank)),
            "all_to_all": (lambda: tutti.all_to_all(rows, **options),
                           lambda: np.stack([self.values(rank, self.rank) for rank in everyone])),
            "scan": (lambda: tutti.scan(mine, **options), lambda: self.sum_of_all(ranks=range(self.rank + 1))),
            "barrier": (lambda: tutti.barrier(**options), None),
        }
        call, wanted = calls[verb]
        result = call()
        if options:
            result = result.wait()
        if wanted:
            self.expect(result, wanted(), verb)

    def message(self):
        source, target = self.step["rank"], self.step["peer"]
        if self.rank == source:
            tutti.send(self.values(source), dst=target, tag=self.index)
        if self.rank == target:
            got = np.zeros(self.step["count"])
            tutti.recv(out=got, src=source, tag=self.index)
            self.expect(got, self.values(source), "message")

    def threads(self):
        """Every thread has a group of its own."""
        groups = [self.world.split(0) for _ in range(3)]
        errors = []

        def body(number):
            try:
                for turn in range(5):
                    self.expect(tutti.all_reduce(self.values(self.rank, number + turn), group=groups[number]),
                                self.sum_of_all(number + turn), "all_reduce in a thread")
            except Exception as error:
                errors.append(error)

        all_threads = [threading.Thread(target=body, args=(number,)) for number in range(3)]
        for thread in all_threads:
            thread.start()
        self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce beside threads")
        for thread in all_threads:
            thread.join()
        if errors:
            raise errors[0]

    def fork(self):
        """Others come into the call that is under way only when the child has ended."""
        state, me, peer = self.step["state"], self.step["rank"], self.step["peer"]
        if self.rank == me:
            self.parent_of_a_child(state, peer)
            return
        self.wait_for_mark()
        if state in ("work", "blocked"):
            self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce beside a fork")
        elif state == "recv" and self.rank == peer:
            tutti.send(self.values(peer), dst=me, tag=self.index)

    def parent_of_a_child(self, state, peer):
        work, thread, results = None, None, []
        buffer = np.zeros(self.step["count"])
        if state == "work":
            work = tutti.all_reduce(self.values(self.rank), async_op=True)
        elif state == "recv":
            work = tutti.irecv(out=buffer, src=peer, tag=self.index)
        elif state == "blocked":
            thread = threading.Thread(target=lambda: results.append(tutti.all_reduce(self.values(self.rank))))
            thread.start()
            time.sleep(0.02)  # it may fork before the thread waits: that has to work as well
        child = os.fork()
        if child == 0:
            self.be_a_child(work)
        try:
            self.wait_for_child(child, 1 if self.step["child"] == "raise" else 0)
        finally:
            self.mark()
        if state == "work":
            self.expect(work.wait(), self.sum_of_all(), "all_reduce beside a fork")
        elif state == "recv":
            work.wait()
            self.expect(buffer, self.values(peer), "message beside a fork")
        elif state == "blocked":
            thread.join()
            if not results:
                raise Wrong("a call failed in a thread beside a fork", "all_reduce")
            self.expect(results[0], self.sum_of_all(), "all_reduce beside a fork")

    def be_a_child(self, work):
        """Ends the process. 9: a handle of the parent's works here, or says nothing."""
        if self.step["child"] == "os_exit":
            os._exit(0)
        if self.step["child"] == "exit":
            sys.exit(0)
        if self.step["child"] == "finalize":
            tutti.finalize()
            sys.exit(0)
        if self.step["child"] == "raise":
            sys.stderr = open(os.devnull, "w")  # what it says is the program's own
            raise ChildEnds("by an exception, as drawn")
        uses = {"use": lambda: tutti.all_reduce(np.ones(1), timeout=3), "work": lambda: work.wait(timeout=3),
                "init": lambda: tutti.init(backend=self.life["backend"], timeout=3)}
        try:
            uses[self.step["child"]]()
        except tutti.Timeout:
            sys.exit(9)
        except tutti.Error:
            sys.exit(0)
        sys.exit(9)

    @staticmethod
    def wait_for_child(child, expected):
        end = time.monotonic() + CHILD_SECONDS
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise Wrong("a forked child hangs", f"it had to be killed after {CHILD_SECONDS} s")
            time.sleep(0.002)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            raise Wrong(f"a forked child died by signal {-code}", signal.strsignal(-code))
        if code == 9:
            raise Wrong("a dead handle works in a forked child, or waits", "no error, or a timeout")
        if code != expected:
            raise Wrong("a forked child failed", f"status {code}")

    def dropped(self):
        source, target = self.step["rank"], self.step["peer"]
        if self.step["what"] == "isend":
            if self.rank == source:
                tutti.isend(self.values(source), dst=target, tag=self.index)
                gc.collect()
            elif self.rank == target:
                got = np.zeros(self.step["count"])
                tutti.recv(out=got, src=source, tag=self.index)
                self.expect(got, self.values(source), "message of a dropped work")
            return
        if self.step["what"] == "irecv":  # cancelled, unless its message had come by then
            if self.rank == target:
                tutti.irecv(out=np.zeros(self.step["count"]), src=source, tag=self.index)
                gc.collect()
                got = np.zeros(self.step["count"])
                tutti.recv(out=got, src=source, tag=self.index)
                if (got == self.values(source)).all():
                    tutti.recv(out=got, src=source, tag=self.index)
                self.expect(got, self.values(source, 1), "message after that of a dropped receive")
            elif self.rank == source:
                for variant in range(2):
                    tutti.send(self.values(source, variant), dst=target, tag=self.index)
            return
        if self.step["what"] == "temporary" and self.rank == source:
            for _ in range(3):  # neither the work nor the array has a name
                tutti.all_reduce(self.values(self.rank) + 0, async_op=True)
            gc.collect()
            return
        for _ in range(2 if self.step["what"] == "temporary" else 0):
            self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce that another rank dropped")
        work = tutti.all_reduce(self.values(self.rank), async_op=True)
        if self.rank == source:
            del work
            gc.collect()
        else:
            self.expect(work.wait(), self.sum_of_all(), "all_reduce that another rank dropped")

    def reinit(self):
        tutti.finalize()
        self.join()

    # The endings.

    def end(self, kind):
        endings = self.life["endings"]
        if kind in LEAVERS:
            for rank in range(self.size):  # a lost rank breaks the world for those that are not so far
                self.wait_for_mark(f"-rank-{rank}")
            self.leave(kind)
        if any(ending in LEAVERS for ending in endings):
            self.note(self.index, lambda: self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "last call") or {})
        else:
            self.note(self.index, lambda: self.last_calls(kind, endings))
        if kind == "finalize":
            tutti.finalize()
        if kind == "atexit_raise":
            atexit.register(self.raise_at_exit)

    def leave(self, kind):
        if kind == "raise":
            raise RuntimeError("this rank ends by an exception, as drawn")
        if kind == "exit":
            sys.exit(3)
        if kind == "with_exit":  # the block's end does not wait for what never comes
            try:
                receipt = tutti.irecv(out=np.zeros(3), src=self.rank, tag=NEVER_TAG)
            except tutti.PeerLost:  # a rank that ends without leaving was quicker, and broke the group
                sys.exit(3)
            with receipt:
                sys.exit(3)
        if kind == "sigterm":
            os.kill(os.getpid(), signal.SIGTERM)
        if kind == "thread_os_exit":
            threading.Thread(target=lambda: os._exit(3)).start()
            with contextlib.suppress(tutti.PeerLost):  # as above
                tutti.recv(src=self.rank, tag=NEVER_TAG)
        os._exit(3)

    @staticmethod
    def raise_at_exit():
        sys.stderr = open(os.devnull, "w")
        raise RuntimeError("of a handler that runs before this rank leaves, as drawn")

    def wait_at_exit(self, work):
        if not np.array_equal(work.wait(), self.sum_of_all()):
            print("Fatal Python error: wrong data in a handler at exit", file=sys.stderr)  # as the judge looks for

    def exit_in_thread(self):
        self.expect(tutti.all_reduce(np.ones(3), group=self.world.subgroup([self.rank])), np.ones(3), "all_reduce in a thread that exits")
        sys.exit(5)  # ends the thread, and nothing else

    @staticmethod
    def call_for_ever(group):
        while True:
            group.all_reduce(np.ones(3))

    def last_calls(self, kind, endings):
        """All ranks post the same; those that end by "work" or "isend" do not wait for what they posted."""
        group = self.world.split(0)
        before, after = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        work = tutti.all_reduce(self.values(self.rank), async_op=True)
        if kind == "atexit_wait":  # handlers that are registered after the import run before this rank leaves
            atexit.register(self.wait_at_exit, work)
        elif kind != "work":
            self.expect(work.wait(), self.sum_of_all(), "all_reduce of ranks that leave")
        if kind == "thread_exit":
            self.in_thread(self.exit_in_thread)
        if kind == "isend":
            tutti.isend(self.values(self.rank), dst=after, tag=self.index)
        if endings[before] == "isend":
            got = np.zeros(self.step["count"])
            tutti.recv(out=got, src=before, tag=self.index)
            self.expect(got, self.values(before), "message of a rank that leaves")
        if kind == "daemon":
            buffer = np.zeros(3)
            threading.Thread(target=lambda: tutti.recv(out=buffer, src=after, tag=NEVER_TAG, group=group), daemon=True).start()
            time.sleep(0.02)  # it may end before the thread waits: that has to work as well
        if kind == "daemon_calls":
            alone = self.world.subgroup([self.rank])
            threading.Thread(target=self.call_for_ever, args=(alone,), daemon=True).start()
            time.sleep(0.01)
