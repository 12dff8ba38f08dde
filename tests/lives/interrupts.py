# interrupts.py: the steps in which a signal's handler raises in a call: what the caller gets back, and what the others see.
# SPDX-License-Identifier: Apache-2.0
import dis
import signal
import time

import numpy as np

import tutti
from basis import CALL_SECONDS, Basis, Wrong


class Interrupted(Exception):
    pass


def interrupted(call, after_s, again_s=0):
    """Whether a handler's exception ended the call, which is a function of Python's: its frame tells that it is under way. A second one
    may come while the first is on its way out of the call, not later. A frame that has only just been entered has not made its call."""
    left = 2 if again_s else 1
    over = False

    def handler(_, frame):
        nonlocal left
        if over:  # a signal that another thread was given and has only now had the time to pass on
            return
        if frame.f_code is interrupted.__code__ or dis.opname[frame.f_code.co_code[frame.f_lasti]] == "RESUME":  # not yet, or no longer
            signal.setitimer(signal.ITIMER_REAL, after_s, again_s)
            return
        left -= 1
        if left == 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
        raise Interrupted

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after_s, again_s)
    try:
        call()
        return False
    except Interrupted:
        return True
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)


class InterruptSteps(Basis):
    def left_call(self, array, out, **options):
        """The collective that one rank leaves; that rank is the root where there is one."""
        verb = self.step["verb"]
        if verb == "all_reduce":
            return tutti.all_reduce(array, out=out, **options)
        if verb == "tree":
            half = len(array) // 2
            parts = lambda whole: None if whole is None else {"a": whole[:half], "b": [whole[half:]]}  # noqa: E731
            tree = tutti.all_reduce(parts(array), out=parts(out), **options)
            return np.concatenate([tree["a"], tree["b"][0]])
        if verb == "broadcast":
            return tutti.broadcast(array, self.step["rank"], out=out, **options)
        return tutti.all_gather(array, axis=None, out=out, **options)

    def left_result(self, variants):
        """What the call gives where each rank had its variant of the data."""
        everyone = [self.values(rank, variant) for rank, variant in enumerate(variants)]
        if self.step["verb"] in ("all_reduce", "tree"):
            return sum(everyone)
        return everyone[self.step["rank"]] if self.step["verb"] == "broadcast" else np.stack(everyone)

    def interrupted_collective(self):
        def leave(group, array):
            is_gather = self.step["verb"] == "all_gather"
            in_place = self.step["in_place"] and not is_gather
            out = array if in_place else np.zeros((self.size, *array.shape) if is_gather else array.shape)
            was_left = interrupted(lambda: self.left_call(array, out, group=group), 0.05, self.step["again_s"])
            # A broadcast's root has nothing to wait for: small data is away at once.
            if not was_left and self.step["verb"] != "broadcast":
                raise Wrong("a collective came back without the others", self.step["verb"])
            self.guard(array)
            if not in_place:
                self.guard(out)
            return was_left

        return self.left_by_one(leave)

    def timed_out_collective(self):
        def leave(group, array):
            out = None if self.step["verb"] == "all_gather" else array
            try:
                self.left_call(array, out, group=group, timeout=0.1)
            except tutti.Timeout:
                self.guard(array)
                return True
            if self.step["verb"] != "broadcast":
                raise Wrong("a collective came back without the others", self.step["verb"])
            self.guard(array)
            return False

        return self.left_by_one(leave)

    def left_by_one(self, leave):
        """One rank leaves a collective by an exception and makes it again, with other data; the others come only then."""
        group = self.world.split(0)
        was_left = True
        if self.rank == self.step["rank"]:
            was_left = leave(group, self.values(self.rank))
            self.mark("" if was_left else "-ended")
            self.mark("-done")
        else:
            self.wait_for_mark("-done")
            was_left = self.has_mark("")
        old = [0 if rank == self.step["rank"] else 1 for rank in range(self.size)]
        try:
            if not was_left:  # the call of the others is the one that this rank has ended
                if self.rank != self.step["rank"]:
                    self.expect(self.left_call(self.values(self.rank, 1), None, group=group), self.left_result(old), "ended call")
                return {}
            result = self.left_call(self.values(self.rank, 1), None, group=group)
            # What the rank had sent before it left is the call's, too; then everybody hears that it left.
            has_old = np.array_equal(result, self.left_result(old))
            if not has_old:
                self.expect(result, self.left_result([1] * self.size), f"{self.step['verb']}, made again")
            # A rank may have its result before it hears that the group is broken. The second barrier ends well only where
            # everybody's first did.
            tutti.barrier(group=group)
            tutti.barrier(group=group)
        except tutti.Error as error:
            return self.described(error)  # the group is broken, the world is not
        if self.step["verb"] == "tree" and not has_old:  # a busy machine: it was left while Python took the tree apart
            return {}
        raise Wrong("a collective that one rank left broke nothing", f"{self.step['verb']}, made again")

    def interrupted_recv(self):
        source, message = self.step["peer"], self.values(self.step["peer"])
        if self.rank == source:
            if not self.step["racing"]:
                self.wait_for_mark()
            tutti.send(message, dst=self.step["rank"], tag=self.index)
        if self.rank != self.step["rank"]:
            return
        buffer = np.zeros(self.step["count"])
        was_left = interrupted(lambda: tutti.recv(out=buffer, src=source, tag=self.index), self.step["after_s"],
                               self.step["again_s"])
        # The handler may run after the message was received and before Python's next line.
        if not was_left or np.array_equal(buffer, message):
            self.expect(buffer, message, "message")
            return
        self.guard(buffer)
        self.mark()
        again = np.zeros(self.step["count"])
        tutti.recv(out=again, src=source, tag=self.index)
        self.expect(again, message, "message, received again after an interrupt")

    def interrupted_send(self):
        """A message whose send was left does not come; the next one does."""
        source, target = self.step["rank"], self.step["peer"]
        if self.rank == source:
            first = self.values(source)
            was_left = interrupted(lambda: tutti.send(first, dst=target, tag=self.index), self.step["after_s"],
                                   self.step["again_s"])
            self.guard(first)
            self.mark("-left" if was_left else "-sent")
            self.mark()
            tutti.send(self.values(source, 1), dst=target, tag=self.index)
        if self.rank == target:
            self.wait_for_mark()
            got = np.zeros(self.step["count"])
            tutti.recv(out=got, src=source, tag=self.index)
            # A small message is away at once; the handler may have run after that.
            if np.array_equal(got, self.values(source)):
                tutti.recv(out=got, src=source, tag=self.index)
            elif self.has_mark("-sent"):
                raise Wrong("a message was lost", f"{got[:4]}")
            self.expect(got, self.values(source, 1), "message after one whose send was left")

    def interrupted_sendrecv(self):
        me, peer = self.step["rank"], self.step["peer"]
        if self.rank == me:
            sent, buffer = self.values(me), np.zeros(self.step["count"])
            call = lambda: tutti.sendrecv(sent, peer, out=buffer, src=peer, tag=self.index)  # noqa: E731
            if not interrupted(call, self.step["after_s"], self.step["again_s"]):
                raise Wrong("sendrecv came back without the other rank", "sendrecv")
            self.guard(sent)
            self.guard(buffer)
            self.mark()
            again = np.zeros(self.step["count"])
            tutti.recv(out=again, src=peer, tag=self.index)
            self.expect(again, self.values(peer), "message after a sendrecv that was left")
        elif self.rank == peer:
            self.wait_for_mark()
            tutti.send(self.values(peer), dst=me, tag=self.index)

    def interrupted_wait(self):
        """Only the waiting ends: the work goes on."""
        me, peer, is_sum = self.step["rank"], self.step["peer"], self.step["what"] == "all_reduce"
        if self.rank == me:
            buffer = np.zeros(self.step["count"])
            work = (tutti.all_reduce(self.values(me), async_op=True) if is_sum
                    else tutti.irecv(out=buffer, src=peer, tag=self.index))
            if not interrupted(lambda: work.wait(), 0.02, self.step["again_s"]):
                raise Wrong("a work ended without the others", self.step["what"])
            self.mark()
            result = work.wait()
            self.expect(result if is_sum else buffer, self.sum_of_all() if is_sum else self.values(peer), "work, waited for again")
            return
        self.wait_for_mark()
        if is_sum:
            self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce")
        elif self.rank == peer:
            tutti.send(self.values(peer), dst=me, tag=self.index)

    def interrupted_finalize(self):
        """One rank has posted a message that nobody receives, and is interrupted while it leaves; all come together again."""
        if self.rank == self.step["rank"]:
            tutti.isend(self.values(self.rank, count=200_000), dst=self.step["peer"], tag=self.index)
            begin = time.monotonic()
            if not interrupted(tutti.finalize, 0.05):
                raise Wrong("finalize did not wait for what was posted, or was not interrupted", "finalize")
            if time.monotonic() - begin > CALL_SECONDS / 2:
                raise Wrong("an interrupt did not end finalize", f"{time.monotonic() - begin:.1f} s")
            self.mark()
        else:
            self.wait_for_mark()
            tutti.finalize()
        self.join()
