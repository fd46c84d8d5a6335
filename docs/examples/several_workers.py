"""Trainer whose trials are runs of Ray Train over several workers: name `several_workers:train`.

The trial itself only waits: it starts the workers, hands their reports to the sweep and the answers
back. The first worker keeps the checkpoint in the trial's folder, which all of them must see.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from ray.train import RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer, prepare_model
from ray.util.queue import Empty, Queue
from torch import distributed, nn
from torch.nn import functional

METRIC, MODE, RESUMES = "val_loss", "min", True
CHECKPOINT = "checkpoint.pt"


def steps(options: Mapping[str, Any]) -> int:
    """Epochs of a full training, for rungs."""
    return int(options.get("epochs", 4))


def train(config: Mapping[str, Any], session: Any) -> None:
    """Starts the workers, and passes on what they say until they have ended."""
    reports, answers = (Queue(actor_options={"num_cpus": 0}) for _ in range(2))
    job = {
        "config": dict(config),
        "file": str((session.folder / CHECKPOINT).resolve()),
        "seed": session.seed,
        "until": session.until or steps(session.options),
        "reports": reports,
        "answers": answers,
    }
    trainer = TorchTrainer(
        work,
        train_loop_config=job,
        scaling_config=ScalingConfig(
            num_workers=int(session.options.get("workers", 2)),
            use_gpu=bool(session.options.get("use_gpu", False)),
            resources_per_worker=resources(session.options),
        ),
        run_config=RunConfig(name="train", storage_path=str(session.folder.resolve())),
    )
    try:
        with ThreadPoolExecutor(1) as pool:
            fitted = pool.submit(trainer.fit)
            pass_on(fitted, session, reports, answers)
            fitted.result()  # raises what a worker raised
    finally:
        reports.shutdown()
        answers.shutdown()


def resources(options: Mapping[str, Any]) -> dict[str, float]:
    """What a worker takes of a node, beside what the trial itself takes."""
    own = {"CPU": float(options.get("cpus_per_worker", 1))}
    return own | ({"GPU": 1.0} if options.get("use_gpu", False) else {})


def pass_on(fitted: Future[Any], session: Any, reports: Queue, answers: Queue) -> None:
    """Reports to the sweep, its answers to the workers."""
    while not fitted.done() or not reports.empty():
        try:
            epoch, metrics = reports.get(timeout=0.5)
        except Empty:
            continue
        answers.put(session.report(metrics, step=epoch))


def work(job: dict[str, Any]) -> None:
    """One worker: its share of the data, with gradients averaged over all of them."""
    context = get_context()
    rank, n_workers = context.get_world_rank(), context.get_world_size()
    torch.manual_seed(job["seed"])  # the same weights everywhere
    x, y = load_data(600, seed=0)
    held_out = load_data(300, seed=1)
    width = job["config"]["width"]
    plain = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
    network = prepare_model(plain)
    optimizer = torch.optim.SGD(network.parameters(), lr=job["config"]["learning_rate"])
    epoch, metrics = restore(Path(job["file"]), plain, optimizer)
    goes_on = True
    if epoch >= job["until"]:  # killed after its last epoch, before anybody heard of it
        tell(job, epoch, metrics)
    while goes_on and epoch < job["until"]:
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(60):
            mine = batch[rank::n_workers]
            optimizer.zero_grad()
            functional.mse_loss(network(x[mine]), y[mine]).backward()
            optimizer.step()
        epoch += 1
        with torch.inference_mode():
            loss = functional.mse_loss(plain(held_out[0]), held_out[1])
        metrics = {"val_loss": float(loss), "workers": n_workers}
        if rank == 0:
            save(Path(job["file"]), plain, optimizer, epoch, metrics)
        goes_on = tell(job, epoch, metrics)


def tell(job: Mapping[str, Any], epoch: int, metrics: Mapping[str, float]) -> bool:
    """The first worker reports; the answer is for all."""
    answer = torch.tensor(1)
    if get_context().get_world_rank() == 0:
        job["reports"].put((epoch, dict(metrics)))
        answer.fill_(int(job["answers"].get()))
    if get_context().get_world_size() > 1:
        distributed.broadcast(answer, 0)
    return bool(answer)


def load_data(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """YOUR DATA: a smooth function of four numbers, with noise."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    return x, x.prod(1, keepdim=True).sin() + 0.1 * torch.randn(n, 1, generator=generator)


def save(
    file: Path, network: nn.Module, optimizer: Any, epoch: int, metrics: Mapping[str, float]
) -> None:
    """Writes beside, then replaces: a crash leaves the old file or the new one."""
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "epoch": epoch, "metrics": dict(metrics)}, file.with_suffix(".new"))
    os.replace(file.with_suffix(".new"), file)


def restore(file: Path, network: nn.Module, optimizer: Any) -> tuple[int, dict[str, float]]:
    """The epochs that are done and the last metrics; 0 and none without a checkpoint."""
    if not file.exists():
        return 0, {}
    state = torch.load(file, map_location="cpu", weights_only=True)
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"], state["metrics"]
