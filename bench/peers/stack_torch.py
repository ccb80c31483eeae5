#!/usr/bin/python3
"""Loss and gradient of a stack of causal linear attention layers in PyTorch, on constructed tokens.

usage: stack_torch.py autograd|fused|matmul single|double SECONDS LAYERS HEADS -> JSON, the paper's sizes otherwise

Tokens [0, s_t, s_t, s_{t-1}]; each layer adds P_h V_h (Q_h K_h^T, causal) over its heads and clips; loss = mean over batch and
time of |s_{t+1} - f_t|^2 / 2 with f_t the first n outputs. Data are drawn once.

`autograd` is the model as one writes it: one product for queries, keys and values of all heads, batched products, autograd.
`fused` is the fastest form we found: the backward by hand into buffers that are kept, 16 sequences at a time so that all of it
stays in cache, heads before sequences so that nothing is transposed, 2 n distinct inputs in the first layer and n outputs
in the last. `matmul` is `fused` with the small products by numpy.matmul on PyTorch's memory, which starts each of them sooner
than torch.bmm.
"""

import json
import os
import sys
import time

import numpy as np
import torch

MALLOC = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824", "MALLOC_TOP_PAD_": "67108864"}


class Stack:
    """parameters[layer] = (query, key, value, output) as in the library: three (H k) x 4 n, one 4 n x (H k)."""

    def __init__(self, parameters, heads, clip, inputs, targets, precision):
        self.dtype = torch.float32 if precision == "single" else torch.float64
        self.parameters = [[torch.as_tensor(w, dtype=self.dtype) for w in layer] for layer in parameters]
        self.layers, self.heads, self.clip = len(parameters), heads, clip
        self.inputs = torch.as_tensor(inputs, dtype=self.dtype).contiguous()
        self.targets = torch.as_tensor(targets, dtype=self.dtype).contiguous()
        self.batch, self.length, self.state = self.inputs.shape
        self.key = self.parameters[0][0].shape[0] // heads
        self.mask = torch.tril(torch.ones(self.length, self.length, dtype=self.dtype))


class Autograd(Stack):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.projections = [torch.cat(layer[:3]).requires_grad_() for layer in self.parameters]
        self.outputs = [layer[3].clone().requires_grad_() for layer in self.parameters]

    def loss(self):
        heads, key, batch, length = self.heads, self.key, self.batch, self.length
        zero = torch.zeros_like(self.inputs)
        last = torch.cat([zero[:, :1], self.inputs[:, :-1]], dim=1)
        stream = torch.cat([zero, self.inputs, self.inputs, last], dim=2)
        for projection, output in zip(self.projections, self.outputs):
            projected = (stream @ projection.T).view(batch, length, 3, heads, key)
            q, k, v = projected.permute(2, 0, 3, 1, 4).unbind(0)
            attended = ((q @ k.transpose(2, 3)) * self.mask) @ v
            stream = stream + attended.transpose(1, 2).reshape(batch, length, heads * key) @ output.T
            stream = stream.clamp(-self.clip, self.clip)
        return 0.5 * (stream[:, :, :self.state] - self.targets).square().sum() / (batch * length)

    def gradient(self):
        """Loss, per layer the gradient of [query; key; value] and of output."""
        with torch.enable_grad():
            loss = self.loss()
            gradient = torch.autograd.grad(loss, self.projections + self.outputs)
        return loss.item(), list(zip(gradient[:self.layers], gradient[self.layers:]))


class Fused(Stack):
    CHUNK = 16

    def __init__(self, *arguments, multiply=torch.bmm):
        super().__init__(*arguments)
        torch.set_grad_enabled(False)
        heads, key, width = self.heads, self.key, 4 * self.state
        self.multiply, self.chunk = multiply, min(self.CHUNK, self.batch)
        # Per head: (q, k, v) together (3 key x width), output (key x width).
        self.projections = [torch.stack(layer[:3]).view(3, heads, key, width).transpose(0, 1).reshape(heads, 3 * key, width)
                            for layer in self.parameters]
        self.outputs = [layer[3].T.reshape(heads, key, width).contiguous() for layer in self.parameters]
        first = self.projections[0]
        n = self.state
        self.projections[0] = torch.cat([first[:, :, n:2 * n] + first[:, :, 2 * n:3 * n], first[:, :, 3 * n:]], dim=2)
        self.outputs[-1] = self.outputs[-1][:, :, :n].contiguous()
        self.buffers = {}

    def buffer(self, name, *shape):
        """Memory kept from chunk to chunk."""
        if (name, shape) not in self.buffers:
            self.buffers[name, shape] = torch.empty(shape, dtype=self.dtype)
        return self.buffers[name, shape]

    def tokens(self, inputs):
        """What the first layer projects, [s_t, s_{t-1}], and the residual stream."""
        rows, n = inputs.shape[0], self.state
        stream = self.buffer("stream0", rows, self.length, 4 * n)
        stream[:, :, :n] = 0
        stream[:, :, n:2 * n] = inputs
        stream[:, :, 2 * n:3 * n] = inputs
        stream[:, 0, 3 * n:] = 0
        stream[:, 1:, 3 * n:] = inputs[:, :-1]
        return stream[:, :, 2 * n:].reshape(-1, 2 * n), stream.view(-1, 4 * n)

    def forward(self, inputs):
        """Per layer: what it projects, (q, k, v), scores, attended, clipped output."""
        rows, kept = inputs.shape[0], []
        heads, key, tokens = self.heads, self.key, rows * self.length
        projected, stream = self.tokens(inputs)
        for layer, (projection, output) in enumerate(zip(self.projections, self.outputs)):
            qkv = self.buffer(f"qkv{layer}", heads, tokens, 3 * key)
            for head in range(heads):
                torch.mm(projected, projection[head].T, out=qkv[head])
            q, k, v = qkv.view(heads * rows, self.length, 3 * key).split(key, dim=2)
            scores = self.buffer(f"scores{layer}", heads * rows, self.length, self.length)
            self.multiply(q, k.transpose(1, 2), out=scores)
            scores.mul_(self.mask)
            attended = self.buffer(f"attended{layer}", heads * rows, self.length, key)
            self.multiply(scores, v, out=attended)
            following = self.buffer(f"stream{layer + 1}", tokens, output.shape[2])
            following.copy_(stream[:, :output.shape[2]])
            for head in range(heads):
                following.addmm_(attended.view(heads, tokens, key)[head], output[head])
            following.clamp_(-self.clip, self.clip)
            kept.append((projected, (q, k, v), scores, attended.view(heads, tokens, key), following))
            projected = stream = following
        return kept

    def backward(self, kept, change, projections, outputs):
        """change: derivative by the last output; sums into the gradients of the projections and outputs."""
        heads, key, length = self.heads, self.key, self.length
        for layer in reversed(range(self.layers)):
            projected, (q, k, v), scores, attended, following = kept[layer]
            change.mul_(following.abs() < self.clip)
            blocks, tokens = q.shape[0], projected.shape[0]
            by_attended = self.buffer("by_attended", heads, tokens, key)
            for head in range(heads):
                torch.mm(change, self.outputs[layer][head].T, out=by_attended[head])
                outputs[layer][head].addmm_(attended[head].T, change)
            by_block = by_attended.view(blocks, length, key)
            by_scores = self.buffer("by_scores", blocks, length, length)
            self.multiply(by_block, v.transpose(1, 2), out=by_scores)
            by_scores.mul_(self.mask)
            by_qkv = self.buffer("by_qkv", blocks, length, 3 * key)
            self.multiply(by_scores, k, out=by_qkv[:, :, :key])
            self.multiply(by_scores.transpose(1, 2), q, out=by_qkv[:, :, key:2 * key])
            self.multiply(scores.transpose(1, 2), by_block, out=by_qkv[:, :, 2 * key:])
            if layer > 0 and change.shape[1] < projected.shape[1]:
                wider = self.buffer("change", *projected.shape)
                wider.zero_()[:, :change.shape[1]] = change
                change = wider
            for head, by_head in enumerate(by_qkv.view(heads, tokens, 3 * key)):
                projections[layer][head].addmm_(by_head.T, projected)
                if layer > 0:
                    change.addmm_(by_head, self.projections[layer][head])

    def gradient(self):
        """As Autograd.gradient."""
        projections = [torch.zeros_like(w) for w in self.projections]
        outputs = [torch.zeros_like(w) for w in self.outputs]
        loss = 0.0
        for begin in range(0, self.batch, self.chunk):
            kept = self.forward(self.inputs[begin:begin + self.chunk])
            residual = kept[-1][4] - self.targets[begin:begin + self.chunk].view(-1, self.state)
            loss += 0.5 * float(residual.square().sum())
            self.backward(kept, residual, projections, outputs)
        scale = 1 / (self.batch * self.length)
        return loss * scale, self.whole(projections, outputs, scale)

    def whole(self, projections, outputs, scale):
        """Gradients in the layout of Autograd: repeated inputs repeated, unused outputs zero."""
        heads, key, n = self.heads, self.key, self.state
        first, last = projections[0], outputs[-1]
        projections[0] = torch.cat([torch.zeros_like(first[:, :, :n]), first[:, :, :n], first], dim=2)
        outputs[-1] = torch.cat([last, torch.zeros(heads, key, 3 * n, dtype=self.dtype)], dim=2)
        return [(p.view(heads, 3, key, 4 * n).transpose(0, 1).reshape(3 * heads * key, 4 * n).mul_(scale),
                 o.reshape(heads * key, 4 * n).T.mul(scale)) for p, o in zip(projections, outputs)]


def multiply_by_numpy(a, b, out):
    np.matmul(a.numpy(), b.numpy(), out=out.numpy())


def make(kind, *arguments):
    if kind == "autograd":
        return Autograd(*arguments)
    return Fused(*arguments, multiply=torch.bmm if kind == "fused" else multiply_by_numpy)


def random_case(layers, heads, batch=256, length=50, state=10, key=20):
    """Weights of a size at which some activations are clipped, states U(-1, 1)."""
    torch.manual_seed(1)
    shapes = 3 * [(heads * key, 4 * state)] + [(4 * state, heads * key)]
    parameters = [[0.05 * torch.randn(shape, dtype=torch.float64) for shape in shapes] for _ in range(layers)]
    states = 2 * torch.rand(batch, length + 1, state, dtype=torch.float64) - 1
    return parameters, heads, 1.5, states[:, :-1], states[:, 1:]


def main():
    kind, precision, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if any(name not in os.environ for name in MALLOC):  # large buffers are kept, not returned to the system at every step
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | MALLOC)
    torch.set_num_threads(1)
    stack = make(kind, *random_case(int(sys.argv[4]), int(sys.argv[5])), precision)
    stack.gradient()  # warm up
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        stack.gradient()
        times.append(1e3 * (time.perf_counter() - start))
    json.dump({"milliseconds": times}, sys.stdout)


if __name__ == "__main__":
    main()
