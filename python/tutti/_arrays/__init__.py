# __init__.py: arrays of every kind, and trees of them.
# SPDX-License-Identifier: Apache-2.0
