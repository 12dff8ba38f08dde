# mpi_comm_world.py: mpi4py's COMM_WORLD
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.COMM_WORLD

# raises on every rank: AttributeError: tutti has no COMM_WORLD; it is called tutti.world() here
