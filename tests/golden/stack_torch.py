#!/usr/bin/python3
"""Writes stack_torch.json: loss and derivatives of small attention stacks in PyTorch, double precision, by autograd.

usage: tests/golden/stack_torch.py > tests/golden/stack_torch.json

Written for plainness, one token and one head at a time where that is plainer. Parameters, inputs and targets are not in the
file: they are fill(size, scale, seed), a linear congruential generator whose values are exact in double precision. A fill of
parameters is taken in the order of the layout: embedding, then per layer query, key, value, output, rho, gate, then readout.
"""

import json
import math
import sys

import torch

LENGTH, STATE, COUNT = 7, 3, 19


def fill(size, scale, seed):
    """x <- (1103515245 x + 12345) mod 2^31 from x = seed; value scale (2 x / 2^31 - 1), the first 3 dropped."""
    values, x = [], seed
    for _ in range(size + 3):
        x = (1103515245 * x + 12345) % 2**31
        values.append(scale * (2 * x / 2**31 - 1))
    return values[3:]


def parameter_shapes(case):
    """Name and shape of every matrix in the order of the flat vector."""
    width, channels, heads = case["width"], case["heads"] * case["key_dimension"], case["heads"]
    raw = case["tokens"] == "raw"
    shapes = [("embedding", (width, STATE))] if raw else []
    for index, kind in enumerate(case["layers"]):
        columns = width + (case["position_dimension"] if index == 0 else 0)
        shapes += [(f"query{index}", (channels, columns)), (f"key{index}", (channels, columns)),
                   (f"value{index}", (channels, width)), (f"output{index}", (width, channels))]
        if kind == "mesa":
            shapes.append((f"rho{index}", (heads,)))
            if case["forgetting"]:
                shapes.append((f"gate{index}", (heads, width + 1)))
    return shapes + ([("readout", (STATE, width))] if raw else [])


def size_of(case):
    return sum(math.prod(shape) for _, shape in parameter_shapes(case))


def positions(dimension):
    """p_t[2 i] = sin(t / 10000^(2 i / P)), p_t[2 i + 1] = cos(same), t = 0 .. T - 1."""
    code = torch.zeros(LENGTH, dimension, dtype=torch.float64)
    for t in range(LENGTH):
        for i in range(dimension // 2):
            angle = t / 10000 ** (2 * i / dimension)
            code[t, 2 * i], code[t, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return code


def tokens(case, w, inputs):
    if case["tokens"] == "raw":
        return inputs @ w["embedding"].T
    zero = torch.zeros_like(inputs)
    last = torch.cat([zero[:, :1], inputs[:, :-1]], dim=1)
    return torch.cat([zero, zero if case["mask_second"] else inputs, inputs, last], dim=2)


def mesa(case, rho, gate, stream, q, k, v):
    """One head: o_t = G_t (H_t + I / lambda)^-1 q_t, G_t = gamma_t G_{t-1} + v_t k_t^T, H_t = gamma_t H_{t-1} + k_t k_t^T."""
    identity = torch.eye(q.shape[2], dtype=torch.float64)
    h = torch.zeros(COUNT, q.shape[2], q.shape[2], dtype=torch.float64)
    g, out = h, []
    for t in range(LENGTH):
        gamma = torch.ones(COUNT, 1, 1, dtype=torch.float64)
        if case["forgetting"]:
            gamma = torch.sigmoid(stream[:, t] @ gate[:-1] + gate[-1])[:, None, None]
        g = gamma * g + v[:, t, :, None] * k[:, t, None, :]
        h = gamma * h + k[:, t, :, None] * k[:, t, None, :]
        solution = torch.linalg.solve(h + identity / torch.exp(rho), q[:, t, :, None])
        out.append((g @ solution)[:, :, 0])
    return torch.stack(out, dim=1)


def attention(kind, case, rho, gate, stream, q, k, v):
    if case["normalise_keys"] and kind != "linear":
        q, k = q / q.norm(dim=2, keepdim=True), k / k.norm(dim=2, keepdim=True)
    if kind == "mesa":
        return mesa(case, rho, gate, stream, q, k, v)
    scores = q @ k.transpose(1, 2)
    future = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), diagonal=1)
    if kind == "linear":
        return scores.masked_fill(future, 0.0) @ v
    return torch.softmax((scores / math.sqrt(q.shape[2])).masked_fill(future, -math.inf), dim=2) @ v


def predictions(case, parameters, inputs):
    w, begin = {}, 0
    for name, shape in parameter_shapes(case):
        w[name] = parameters[begin:begin + math.prod(shape)].reshape(shape)
        begin += math.prod(shape)
    stream = tokens(case, w, inputs)
    code = positions(case["position_dimension"]).expand(COUNT, -1, -1)
    clipped = []
    for index, kind in enumerate(case["layers"]):
        located = torch.cat([stream, code], dim=2) if index == 0 else stream
        change = torch.zeros_like(stream)
        for head in range(case["heads"]):
            rows = slice(head * case["key_dimension"], (head + 1) * case["key_dimension"])
            q, k = located @ w[f"query{index}"][rows].T, located @ w[f"key{index}"][rows].T
            v = stream @ w[f"value{index}"][rows].T
            rho = w[f"rho{index}"][head] if kind == "mesa" else None
            gate = w[f"gate{index}"][head] if kind == "mesa" and case["forgetting"] else None
            change = change + attention(kind, case, rho, gate, stream, q, k, v) @ w[f"output{index}"][:, rows].T
        stream = stream + change
        if case["clip"] > 0:
            clipped.append((stream.abs() > case["clip"]).double().mean().item())
            stream = stream.clamp(-case["clip"], case["clip"])
    return (stream @ w["readout"].T if case["tokens"] == "raw" else stream[:, :, :STATE]), clipped


def results(case):
    case["parameter_count"] = size_of(case)
    parameters = torch.tensor(fill(case["parameter_count"], case["parameter_scale"], 1), dtype=torch.float64)
    parameters.requires_grad_()
    inputs = torch.tensor(fill(COUNT * LENGTH * STATE, 1.0, 2), dtype=torch.float64).reshape(COUNT, LENGTH, STATE)
    inputs.requires_grad_()
    targets = torch.tensor(fill(COUNT * LENGTH * STATE, 1.0, 3), dtype=torch.float64).reshape(COUNT, LENGTH, STATE)
    weights = torch.tensor(case["position_weights"] or [1 / LENGTH] * LENGTH, dtype=torch.float64)
    f, clipped = predictions(case, parameters, inputs)
    loss = (0.5 * (targets - f).square().sum(2) * weights).sum() / COUNT
    loss.backward()
    print(f"{case['name']}: loss {loss.item():.4f}, share clipped {clipped}", file=sys.stderr)
    return case | {"loss": loss.item(), "gradient": parameters.grad.tolist(),
                   "last_predictions": f[-1].detach().flatten().tolist(),
                   "input_gradient_of_last": inputs.grad[-1].flatten().tolist()}


def case(name, layers, **changed):
    plain = {"tokens": "constructed", "width": 4 * STATE, "position_dimension": 0, "heads": 2, "key_dimension": 5,
             "clip": 0.0, "mask_second": False, "normalise_keys": False, "forgetting": False, "parameter_scale": 0.4,
             "position_weights": []}
    return {"name": name, "layers": layers} | plain | changed


RAW = {"tokens": "raw", "width": 8, "position_dimension": 6, "parameter_scale": 0.6}
CASES = [
    case("linear", ["linear", "linear"], clip=1.5, parameter_scale=0.5),
    case("linear-masked", ["linear"], clip=1.2, mask_second=True, parameter_scale=0.5),
    case("softmax", ["softmax", "softmax"], **RAW),
    case("softmax-normalised", ["softmax"], normalise_keys=True, clip=0.7, **RAW),
    case("mesa", ["mesa"], parameter_scale=0.5, position_weights=[0.0, 0.3, 0.0, 0.2, 0.1, 0.0, 0.4]),
    case("mesa-forgetting", ["mesa"], forgetting=True),
    case("mesa-normalised", ["mesa"], normalise_keys=True, **RAW),
    case("hybrid", ["softmax", "mesa"], normalise_keys=True, forgetting=True, **RAW),
]


def main():
    document = {"length": LENGTH, "state_dimension": STATE, "count": COUNT, "input_seed": 2, "target_seed": 3,
                "parameter_seed": 1, "cases": [results(case) for case in CASES]}
    json.dump(document, sys.stdout)
    print()


if __name__ == "__main__":
    main()
