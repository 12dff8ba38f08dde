# horovod_distributed_optimizer.py: Horovod's DistributedOptimizer
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
optimizer = tutti.DistributedOptimizer(None)

# raises on every rank: AttributeError: tutti has no DistributedOptimizer; it is called tutti.average(gradients), or tutti.torch.DataParallel here
