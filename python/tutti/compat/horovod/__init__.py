# __init__.py: Horovod's names, by framework: ``import tutti.compat.horovod.torch as hvd``.
# SPDX-License-Identifier: Apache-2.0
