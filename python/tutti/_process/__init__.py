# __init__.py: this process: joining a job, leaving it, and what surrounds it.
# SPDX-License-Identifier: Apache-2.0
