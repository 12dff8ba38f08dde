# train.py: a small model trained on this rank's data by a library above torch.distributed; prints a loss per step.
# SPDX-License-Identifier: Apache-2.0
"""python train.py lightning|accelerate|deepspeed-STAGE gloo|tutti; ranks are started by torchrun. Prints the losses that
rank 0 sees, as numbers that two runs can be compared by."""

import os
import sys

import torch
import torch.distributed as dist
import tutti.torch  # noqa: F401  the backend

STEPS, BATCH = 8, 4


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1))


def data():
    x = torch.sin(torch.arange(STEPS * BATCH * 2 * 6, dtype=torch.float32) * 0.7).reshape(-1, 6)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True).cos())


def lightning(backend):
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    losses = []

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model()

        def training_step(self, batch, _):
            loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
            self.log("loss", loss, sync_dist=True)
            losses.append(loss.detach())
            return loss

        def validation_step(self, batch, _):
            self.log("validation", torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]), sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.05)

    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, num_nodes=1, max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, sync_batchnorm=False,
        strategy=DDPStrategy(process_group_backend=backend),
    )
    loader = torch.utils.data.DataLoader(data(), batch_size=BATCH)
    trainer.fit(Module(), loader, loader)
    return [*map(float, losses), *(float(trainer.callback_metrics[name]) for name in ("loss", "validation"))]


def accelerate(backend):
    dist.init_process_group(backend)  # accelerate knows backends by name only, and takes a group that is there
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), 0.01)
    net, optimizer, loader = accelerator.prepare(
        net, optimizer, torch.utils.data.DataLoader(data(), batch_size=BATCH)
    )
    losses = []
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(net(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(accelerator.gather(loss.detach()).mean()))
    return losses


def deepspeed(backend, stage):
    import deepspeed

    dist.init_process_group(backend)
    deepspeed.init_distributed(dist_backend=backend, verbose=False)
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    torch.manual_seed(7)
    for parameter in net.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    config = {
        "train_micro_batch_size_per_gpu": BATCH,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": stage > 0},
    }
    engine, *_ = deepspeed.initialize(model=net, optimizer=torch.optim.SGD(net.parameters(), 0.05), config=config)
    kind = torch.bfloat16 if stage > 0 else torch.float32
    part = torch.utils.data.Subset(data(), range(dist.get_rank(), len(data()), dist.get_world_size()))
    losses = []
    for x, y in torch.utils.data.DataLoader(part, batch_size=BATCH):
        loss = torch.nn.functional.mse_loss(engine(x.to(kind)), y.to(kind))
        engine.backward(loss)
        engine.step()
        losses.append(float(loss))
    return losses


def main():
    library, backend = sys.argv[1:]
    name, _, stage = library.partition("-")
    losses = {"lightning": lightning, "accelerate": accelerate, "deepspeed": deepspeed}[name](
        backend, *([int(stage)] if stage else [])
    )
    if not dist.is_initialized() or dist.get_backend() != backend:
        raise SystemExit(f"the group's backend is not {backend}")
    if dist.get_rank() == 0:
        print("LOSSES", *(f"{loss:.7g}" for loss in losses), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    main()
