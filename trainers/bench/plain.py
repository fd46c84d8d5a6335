"""Plain training loop of torchvision, PIL and a DataLoader, channels first.

`trainers.train` is measured against it. It runs in one process, as a trial with one CPU does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import CIFAR10

from trainers.blocks import build
from trainers.convolution import DenseConvolution
from trainers.data import open_cifar10
from trainers.dataset import CIFAR10_SCALE, split
from trainers.depthwise import DepthwiseConvolution
from trainers.recipe import Recipe
from trainers.squeeze import SqueezeExcitation


class PlainTraining:
    """Steps of the plain loop.

    Args:
        config: a configuration of the NAS space.
        recipe: size of the images and of the network, number of images.
    """

    def __init__(self, config: dict[str, Any], recipe: Recipe) -> None:
        torch.manual_seed(0)
        self.network = _plain(build(config, recipe.width, image_size=recipe.image_size))
        self.optimiser = torch.optim.SGD(
            self.network.parameters(),
            lr=0.1,
            momentum=recipe.momentum,
            nesterov=True,
            weight_decay=recipe.weight_decay,
        )
        loader = DataLoader(
            _pictures(recipe), int(config["batch_size"]), shuffle=True, drop_last=True
        )
        self._batches = _forever(loader)
        self.loss = 0.0

    def next_batch(self) -> tuple[Tensor, Tensor]:
        """Images `(batch, 3, s, s)` and labels `(batch,)`."""
        return next(self._batches)

    def train_on(self, images: Tensor, labels: Tensor) -> None:
        """One step of the optimiser."""
        self.network.train()
        self.optimiser.zero_grad()
        loss = functional.cross_entropy(self.network(images), labels)
        loss.backward()
        self.optimiser.step()
        self.loss += loss.item()


def _forever(loader: Any) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


def _plain(network: nn.Module) -> nn.Module:
    """The same network of torch's own layers."""
    for module in network.modules():
        for name, child in list(module.named_children()):
            if isinstance(child, DenseConvolution | DepthwiseConvolution):
                setattr(module, name, _torch_convolution(child))
            if isinstance(child, SqueezeExcitation):
                setattr(module, name, PlainSqueezeExcitation(child))
    return network


class PlainSqueezeExcitation(nn.Module):
    """Squeeze-and-excitation as in the paper."""

    def __init__(self, layer: SqueezeExcitation) -> None:
        super().__init__()
        self.squeeze, self.excite = layer.squeeze, layer.excite

    def forward(self, x: Tensor) -> Tensor:
        gate = self.excite(functional.silu(self.squeeze(x.mean((2, 3))))).sigmoid()
        return x * gate[:, :, None, None]


def _torch_convolution(layer: nn.Conv2d) -> nn.Conv2d:
    kernel, stride, groups = layer.kernel_size[0], layer.stride[0], layer.groups
    sizes = layer.in_channels, layer.out_channels, kernel, stride, kernel // 2
    plain = nn.Conv2d(*sizes, groups=groups, bias=False)
    plain.load_state_dict(layer.state_dict())
    return plain


def _pictures(recipe: Recipe) -> CIFAR10:
    """torchvision's own data set, filled from our cache instead of its files."""
    arrays = open_cifar10(recipe.data)
    chosen, _ = split(arrays.train_y, recipe)
    size = recipe.image_size
    mean, deviation = ([value / 255 for value in part] for part in CIFAR10_SCALE)
    pictures = CIFAR10.__new__(CIFAR10)
    pictures.data = arrays.train_x[chosen].transpose(0, 2, 3, 1).copy()
    pictures.targets = arrays.train_y[chosen].tolist()
    pictures.target_transform = None
    pictures.transform = transforms.Compose(
        [
            *([transforms.Resize(size)] if size < 32 else []),
            transforms.RandomCrop(size, padding=recipe.crop_padding * size // 32),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(mean, deviation),
        ]
    )
    return pictures
