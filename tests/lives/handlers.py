# handlers.py: the steps in which something calls from inside: a signal's handler, a callback, another thread; and forks there.
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import threading
import time

import numpy as np

import tutti
from basis import Wrong
from making import MakingSteps


class HandlerSteps(MakingSteps):
    def calling_handler(self):
        """A handler that does not raise may call while the call that it interrupts waits, which goes on afterwards."""
        me, peer = self.step["rank"], self.step["peer"]
        tag, count = 1000 + self.index, self.step["count"]
        if self.rank == me:
            calls = []

            def handler(*_):
                tutti.send(self.values(me, 1), dst=peer, tag=tag)
                calls.append("sent")

            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, self.step["after_s"])
            self.take_part(peer)
            if calls != ["sent"]:
                raise Wrong("a call ended before what it waits for", f"{calls}")
        elif self.rank == peer:
            got = np.zeros(count)
            tutti.recv(out=got, src=me, tag=tag)
            self.expect(got, self.values(me, 1), "message of a signal's handler")
            self.mark()
            self.take_part(peer)
        else:
            self.wait_for_mark()
            self.take_part(peer)

    def take_part(self, peer):
        """A call that ends once `peer` has come."""
        if self.step["what"] == "all_reduce":
            self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce with a handler that calls")
        elif self.rank == self.step["rank"]:
            got = np.zeros(self.step["count"])
            tutti.recv(out=got, src=peer, tag=self.index)
            self.expect(got, self.values(peer), "message with a handler that calls")
        elif self.rank == peer:
            tutti.send(self.values(peer), dst=self.step["rank"], tag=self.index)

    def forking_inside(self):
        """The fork happens in a callback, or in a thread beside a call that the main thread waits in."""
        if self.rank != self.step["rank"]:
            self.wait_for_mark("-ready")
            self.expect(tutti.all_reduce(self.values(self.rank)), self.sum_of_all(), "all_reduce of a rank that forks inside")
            return
        outcomes = []

        def fork(*_):
            try:
                child = os.fork()
                if child == 0:
                    self.be_a_child_of_a_thread()
                self.wait_for_child(child, 0)
                outcomes.append(None)
            except Wrong as wrong:
                outcomes.append(wrong)

        if self.step["where"] == "callback":
            work = tutti.all_reduce(self.values(self.rank), async_op=True)
            work.add_done_callback(fork)
            self.mark("-ready")
            result = work.wait()
        else:

            def beside():
                time.sleep(0.01)  # the main thread may wait by then, or not
                fork()
                self.mark("-ready")

            thread = threading.Thread(target=beside)
            thread.start()
            result = tutti.all_reduce(self.values(self.rank))
            thread.join()
        self.expect(result, self.sum_of_all(), "all_reduce of the rank that forks inside")
        self.wait_until(lambda: outcomes, "the callback never came")
        if outcomes[0]:
            raise outcomes[0]

    def be_a_child_of_a_thread(self):
        """This thread is the only one, and not the one that ends the interpreter."""
        if self.step["child"] == "use":
            try:
                tutti.all_reduce(np.ones(1), timeout=3)
            except tutti.Timeout:
                os._exit(9)
            except tutti.Error:
                os._exit(0)
            os._exit(9)
        if self.step["child"] == "finalize":
            tutti.finalize()
        os._exit(0)
