# __init__.py: torch.distributed's backend "tutti"; importing it registers the backend.
# SPDX-License-Identifier: Apache-2.0
from .group import ProcessGroup, group_of

__all__ = ["ProcessGroup", "group_of"]
