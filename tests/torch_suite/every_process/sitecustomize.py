# sitecustomize.py: in every process of PyTorch's test files: what files.py changes of Python and torch.
# SPDX-License-Identifier: Apache-2.0
"""Python imports this module first where its folder is on PYTHONPATH, in processes that a test starts as well."""

import os

import fork_server

fork_server.install()
if os.environ.get("TORCH_FILES_BACKEND") == "tutti":
    import as_gloo

    as_gloo.install()
