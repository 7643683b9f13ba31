"""A fast multilayer perceptron for CPUs: all towers over one input are one node of autograd's graph.

In networks this small, autograd's bookkeeping, torch's tanh and fresh memory cost more than the products. So the towers'
forward and backward are a few fat kernels in memory that is kept, and gradients of weights are added straight to where
they belong. It computes what the plain modules compute (a test compares them), and is the plain modules wherever the
short way would not be sound. Knows no policy and no loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from penstock.core.specs import Array

Activation = Literal["tanh", "relu"]

NARROW = 24
"""Products with a side shorter than this are NumPy's: its calls cost a third of torch's, and MKL is slow at D'X here."""
SPARES = 4
"""Workspaces kept; the minibatches of one update come in at most two sizes."""


class Mlp(nn.ModuleList):
    """A tower: linear layers `0`, `1`, ... with an activation between them."""

    def __init__(self, sizes: Sequence[int], activation: Activation) -> None:
        super().__init__(nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes))
        self.activation: Activation = activation
        self.settled: list[SettledLayer] | None = None

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self
        for layer in hidden:
            x = torch.tanh(layer(x)) if self.activation == "tanh" else torch.relu(layer(x))
        result: Tensor = last(x)
        return result

    def settle(self) -> None:
        """Called once the parameters and their gradients lie where they will stay: from now on the short way is sound."""
        tensors = [tensor for layer in self for tensor in (layer.weight, layer.bias)]
        if all(t.requires_grad and t.grad is not None and t.device.type == "cpu" for t in tensors):
            self.settled = [SettledLayer.of(layer) for layer in self]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "settled": None}  # a copy's parameters lie elsewhere


@dataclass(frozen=True, slots=True)
class SettledLayer:
    """A linear layer's memory, seen from torch and from NumPy."""

    weight: Tensor
    weight_transposed: Tensor
    bias: Tensor
    weight_gradient: Tensor
    weight_array: Array
    weight_gradient_array: Array
    bias_gradient_array: Array
    narrow: bool

    @classmethod
    def of(cls, layer: nn.Module) -> SettledLayer:
        assert isinstance(layer, nn.Linear)
        weight, bias = layer.weight.data, layer.bias.data
        weight_gradient, bias_gradient = layer.weight.grad, layer.bias.grad
        assert weight_gradient is not None
        assert bias_gradient is not None
        return cls(
            weight=weight,
            weight_transposed=weight.t(),
            bias=bias,
            weight_gradient=weight_gradient,
            weight_array=weight.numpy(),
            weight_gradient_array=weight_gradient.numpy(),
            bias_gradient_array=bias_gradient.numpy(),
            narrow=min(weight.shape) < NARROW,
        )

    def add_gradients(self, delta: Tensor, delta_array: Array, inputs: Tensor, input_array: Array, ones: Array) -> None:
        """dW += delta' inputs, db += column sums of delta."""
        if self.narrow:
            np.add(self.weight_gradient_array, np.matmul(delta_array.T, input_array), out=self.weight_gradient_array)
        else:
            self.weight_gradient.addmm_(delta.t(), inputs)
        np.add(self.bias_gradient_array, np.matmul(ones, delta_array), out=self.bias_gradient_array)

    def input_gradient(self, delta: Tensor, delta_array: Array, out: Tensor, out_array: Array) -> None:
        """out = delta W."""
        if self.narrow:
            np.matmul(delta_array, self.weight_array, out=out_array)
        else:
            torch.mm(delta, self.weight, out=out)


class Workspace:
    """One pass's hidden layers of one tower, and their gradients, for one number of rows.

    Kept from pass to pass: memory of this size goes back to the operating system when freed, and mapping its pages anew
    can cost as much as the products. A forward takes one from `SettledTowers` and its backward puts it back: two passes
    under way never share one, and one that is dropped takes its workspace along. It is kept small, to stay in cache:
    a layer's gradient may lie where the layer above was, which backward has done with by then, and the last hidden
    layer's in `scratch`, which the towers of a pass use in turn.
    """

    def __init__(self, rows: int, widths: Sequence[int], scratch: dict[int, Tensor]) -> None:
        self.hidden = [torch.empty(rows, width) for width in widths]
        self.hidden_arrays = [h.numpy() for h in self.hidden]
        self.delta = [
            h if h.shape[1] == width else torch.empty(rows, width) for width, h in zip(widths, self.hidden[1:], strict=False)
        ]
        if widths:
            self.delta.append(scratch.setdefault(widths[-1], torch.empty(rows, widths[-1])))
        self.delta_arrays = [d.numpy() for d in self.delta]
        self.ones = np.ones(rows, np.float32)


class SettledTowers:
    """Settled towers that read the same input, their workspaces, and a parameter by which autograd reaches them."""

    def __init__(self, towers: Sequence[Mlp]) -> None:
        self.towers = [(tower.settled or [], tower.activation) for tower in towers]
        self.anchor = towers[0][0].weight
        self._spare: dict[int, list[list[Workspace]]] = {}

    def take_workspaces(self, rows: int) -> list[Workspace]:
        spare = self._spare.get(rows)
        if spare:
            return spare.pop()
        scratch: dict[int, Tensor] = {}
        return [Workspace(rows, [len(layer.bias) for layer in layers[:-1]], scratch) for layers, _ in self.towers]

    def give_back(self, rows: int, spaces: list[Workspace]) -> None:
        if len(self._spare) >= SPARES and rows not in self._spare:
            self._spare.clear()
        self._spare.setdefault(rows, []).append(spaces)


def run_towers(towers: SettledTowers, x: Tensor) -> tuple[Tensor, ...]:
    """Each tower's output for the same rows."""
    return TowersPass.apply(x, towers, towers.anchor)  # type: ignore[no-any-return,no-untyped-call]  # torch's are untyped


class TowersPass(torch.autograd.Function):
    """Linear, activation, ..., linear for all towers as one node. No gradient flows to the input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, towers: SettledTowers, _anchor: Tensor) -> tuple[Tensor, ...]:
        ctx.towers, ctx.x, ctx.spaces = towers, x, towers.take_workspaces(len(x))
        outputs = []
        for (layers, activation), space in zip(towers.towers, ctx.spaces, strict=True):
            inputs = x
            for layer, h, array in zip(layers, space.hidden, space.hidden_arrays, strict=False):
                torch.addmm(layer.bias, inputs, layer.weight_transposed, out=h)
                if activation == "tanh":
                    np.tanh(array, out=array)  # vectorised: seven times as fast as torch's on a CPU
                else:
                    h.relu_()
                inputs = h
            outputs.append(torch.addmm(layers[-1].bias, inputs, layers[-1].weight_transposed))
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *deltas: Tensor) -> tuple[None, None, None]:
        if ctx.spaces is None:
            raise RuntimeError("the workspaces of this pass went back with its first backward; run forward again")
        with np.errstate(invalid="ignore", over="ignore"):  # who asked for gradients checks that they are finite
            for (layers, activation), space, delta in zip(ctx.towers.towers, ctx.spaces, deltas, strict=True):
                _tower_backward(layers, activation, space, ctx.x, delta)
        ctx.towers.give_back(len(ctx.x), ctx.spaces)
        ctx.spaces = None
        return None, None, None


def _tower_backward(layers: list[SettledLayer], activation: Activation, space: Workspace, x: Tensor, delta: Tensor) -> None:
    delta_array = delta.numpy()
    for index in range(len(layers) - 1, 0, -1):
        layer, h, h_array = layers[index], space.hidden[index - 1], space.hidden_arrays[index - 1]
        layer.add_gradients(delta, delta_array, h, h_array, space.ones)
        layer.input_gradient(delta, delta_array, space.delta[index - 1], space.delta_arrays[index - 1])
        delta, delta_array = space.delta[index - 1], space.delta_arrays[index - 1]
        if activation == "tanh":
            torch.ops.aten.tanh_backward.grad_input(delta, h, grad_input=delta)
        else:
            torch.ops.aten.threshold_backward.grad_input(delta, h, 0, grad_input=delta)
    layers[0].add_gradients(delta, delta_array, x, x.numpy(), space.ones)
