# torch_average_gradients.py: PyTorch's tutorial, averaging gradients by hand
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
torch.manual_seed(1)
model = torch.nn.Linear(2, 1)
model(torch.full((1, 2), tutti.rank() + 1.0)).sum().backward()
for param, grad in zip(model.parameters(), tutti.average([p.grad for p in model.parameters()])):
    param.grad = grad
print(model.weight.grad, model.bias.grad)

# prints:
#   tensor([[1.5000, 1.5000]]) tensor([1.])
#   tensor([[1.5000, 1.5000]]) tensor([1.])
