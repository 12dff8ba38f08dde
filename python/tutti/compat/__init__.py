# __init__.py: modules that have the names of other libraries, so that their programs run with another import line.
# SPDX-License-Identifier: Apache-2.0
"""``tutti.compat.torchshard``, ``.mpi4jax``, ``.horovod.torch`` and ``.ivy``. docs/coming_from.md says what each of them has."""
