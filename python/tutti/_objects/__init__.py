# __init__.py: Python objects as bytes, and the verbs that move them.
# SPDX-License-Identifier: Apache-2.0
