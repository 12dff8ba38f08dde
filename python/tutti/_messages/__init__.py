# __init__.py: messages between two ranks.
# SPDX-License-Identifier: Apache-2.0
