# torch_names_in_torch.py: torch's names in tutti.torch, and its keywords in DataParallel
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti
import tutti.torch

tutti.init()
attempts = (
    lambda: tutti.torch.DistributedSampler,
    lambda: tutti.torch.DistributedDataParallel,
    lambda: tutti.torch.DataParallel(torch.nn.Linear(1, 1), device_ids=[0]),
    lambda: tutti.torch.DataParallel(torch.nn.Linear(1, 1), process_group=None),
)
for attempt in attempts:
    try:
        attempt()
    except (AttributeError, tutti.InvalidArgument) as error:
        if tutti.rank() == 0:
            print(error)

# prints:
#   tutti.torch has no DistributedSampler; it is called tutti.torch.ShardSampler here
#   tutti.torch has no DistributedDataParallel; it is called tutti.torch.DataParallel here
#   DataParallel: there is no device_ids=; here it is nothing: leave it out
#   DataParallel: there is no process_group=; here it is group=
