# __init__.py: training in parallel, for any framework.
# SPDX-License-Identifier: Apache-2.0
