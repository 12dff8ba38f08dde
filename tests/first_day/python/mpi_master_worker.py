# mpi_master_worker.py: the manual's master and workers: tasks to whoever asks, tags say what a message is
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import tutti

comm = tutti.init()
TASK, DONE = 1, 2
if comm.rank == 0:
    tasks, results, busy = list(range(7)), {}, 0
    for worker in range(1, comm.size):
        comm.send(tasks.pop(), worker, tag=TASK)
        busy += 1
    while busy:
        work = comm.irecv(None)
        task, value = work.wait()
        results[task] = value
        if tasks:
            comm.send(tasks.pop(), work.source, tag=TASK)
        else:
            comm.send(None, work.source, tag=DONE)
            busy -= 1
    print(sorted(results.items()))
else:
    while True:
        message = comm.probe(0, tag=None)
        task = message.recv()
        if message.tag == DONE:
            break
        comm.send((task, task * task), 0)

# prints:
#   [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16), (5, 25), (6, 36)]
