# __init__.py: calls of verbs: from the functions that people call to the native core.
# SPDX-License-Identifier: Apache-2.0
