# mpi_send_anything.py: mpi4py: comm.send of whatever there is
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
things = ["text", 3, 2.5, True, None, b"bytes", {"name": "x", "values": [1, 2]}, (1, "a"), {1, 2}, 10**30]
if comm.rank == 0:
    for thing in things:
        comm.send(thing, 1)
else:
    got = [comm.recv(0) for _ in things]
    print(got == things, [type(each).__name__ for each in got[1:4]])

# prints:
#   True ['int', 'float', 'bool']
