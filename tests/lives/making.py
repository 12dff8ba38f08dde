# making.py: the steps in which jobs are joined and groups made while a handler raises, and calls that wait for news are left.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti
from basis import CALL_SECONDS, Wrong
from interrupts import InterruptSteps, interrupted


LOST_GROUP_SECONDS = 10


class MakingSteps(InterruptSteps):
    def interrupted_making(self):
        """One rank leaves the making of a group: the others hear of it, there or in the group, and the world goes on."""
        me, what = self.step["rank"], self.step["what"]
        parent = self.world.split(0)
        makes = {"split": lambda: parent.split(0), "subgroup": lambda: parent.subgroup(list(range(self.size))), "shrink": parent.shrink}
        made = []

        def make():
            made.append(makes[what]())

        if self.rank == me:
            interrupted(make, self.step["after_s"], self.step["again_s"])
            self.mark("-made" if made else "-left")
            self.mark("-done")
            if not made:
                return self.described(tutti.Aborted("left, as drawn"))
        elif self.step["racing"]:
            error = self.error_of(make)
            self.wait_for_mark("-done")
            if error and self.has_mark("-made"):
                raise Wrong("a group was not made although no rank left it", f"{what}: {error}")
        else:
            self.wait_for_mark("-done")
            error = self.error_of(make)
        if self.has_mark("-left"):
            # Between the call's end and Python's next line, the rank had the group and has lost it: nobody can tell the others.
            error = error or self.error_of(lambda: made[0].all_reduce(self.values(self.rank), timeout=LOST_GROUP_SECONDS))
            if error is None and made[0].size < self.size:  # shrunk when that rank had left the job, in its next step
                error = tutti.Aborted("went on without the rank that left")
            if error is None:
                raise Wrong("a group works that one rank never got", what)
            return self.described(error)
        self.expect(made[0].all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce of a group that was made")
        return {}

    @staticmethod
    def error_of(call):
        try:
            call()
        except tutti.Error as error:
            return error
        return None

    def interrupted_init(self):
        """A meeting cannot be taken back: the rank comes back to it."""
        tutti.finalize()
        if self.rank == self.step["rank"]:
            interrupted(self.join, self.step["after_s"], self.step["again_s"])
            self.mark()
            if tutti.is_initialized():
                self.world = tutti.world()
            else:
                self.joins -= 1
                self.join()
        else:
            if not self.step["racing"]:
                self.wait_for_mark()
            self.join()
        self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce after init was interrupted")

    def interrupted_prepared(self):
        """Only the waiting ends."""
        mine = self.values(self.rank)
        call = tutti.prepare("all_reduce", mine)
        for turn in range(2):
            if self.rank == self.step["rank"]:
                call.start()
                if not interrupted(lambda: call.wait(), 0.02, self.step["again_s"]):
                    raise Wrong("a prepared call ended without the others", "all_reduce")
                self.mark(f"-{turn}")
            else:
                self.wait_for_mark(f"-{turn}")
                call.start()
            self.expect(call.wait(), self.sum_of_all(), "prepared call, waited for again")

    def interrupted_probe(self):
        me, peer = self.step["rank"], self.step["peer"]
        if self.rank == me:
            found = []
            interrupted(lambda: found.append(tutti.probe(peer, tag=self.index)), self.step["after_s"], self.step["again_s"])
            self.mark()
            message = found[0] if found else tutti.probe(peer, tag=self.index)
            self.expect(message.recv(), self.values(peer), "message that a probe found after an interrupt")
        elif self.rank == peer:
            if not self.step["racing"]:
                self.wait_for_mark()
            tutti.send(self.values(peer), dst=me, tag=self.index)

    def cancelled(self):
        """A message that was taken back never was; one that was not comes before the next."""
        me, peer = self.step["rank"], self.step["peer"]
        if self.step["what"] == "irecv":
            if self.rank == me:
                buffer, again = np.zeros(self.step["count"]), np.zeros(self.step["count"])
                work = tutti.irecv(out=buffer, src=peer, tag=self.index)
                if self.is_taken_back(work):
                    self.guard(buffer)
                    tutti.recv(out=again, src=peer, tag=self.index)
                    self.expect(again, self.values(peer), "message after a receive that was cancelled")
                else:
                    self.expect(buffer, self.values(peer), "message of a receive that was cancelled too late")
            elif self.rank == peer:
                tutti.send(self.values(peer), dst=me, tag=self.index)
        elif self.rank == me:
            work = tutti.isend(self.values(me), dst=peer, tag=self.index)
            work.cancel()
            tutti.send(self.values(me, 1), dst=peer, tag=self.index)
            self.mark("-back" if self.is_taken_back(work) else "-sent")
            self.mark()
        elif self.rank == peer:
            got = np.zeros(self.step["count"])
            tutti.recv(out=got, src=me, tag=self.index)
            was_first = np.array_equal(got, self.values(me))
            if was_first:
                tutti.recv(out=got, src=me, tag=self.index)
            self.expect(got, self.values(me, 1), "message after one that was cancelled")
            self.wait_for_mark()
            if self.has_mark("-back") == was_first:
                raise Wrong("a cancelled message came, or one that was not did not", f"came: {was_first}")

    @staticmethod
    def is_taken_back(work):
        work.cancel()
        try:
            work.wait(timeout=CALL_SECONDS)
        except tutti.Aborted:
            return True
        return False
