"""One stochastic gradient step of the split multi-head attention model in NumPy, fused by hand.

The same model as `kind = "attention"`: I tasks in equal blocks of d covariates, fresh contexts of L tokens every step,
  y_l = G^T x_l + eps_l,  yhat = sum_h O_h V_h Z softmax(s_w Z^T K_h^T Q_h z_q),  loss = |yhat - G^T q|^2 / 2,
gradient with respect to all of K, Q, V (e x (d+I)) and O (I x e) of every head.

As fast as NumPy goes: no token is projected ((K^T (Q z_q)) first, O V once a step), responses and scores come out of one
product, contexts are worked on in chunks that stay in cache, and normals are made in the working precision by Box-Muller
on whole arrays (SFC64 uniforms), which takes half the time of Generator.standard_normal.
"""

import numpy as np


class Contexts:
    """Draws chunks of contexts: X (c, L, d), q (c, d), G (c, d, I), noise (c, L, I)."""

    def __init__(self, length, task_dimensions, noise_deviation, dtype, seed):
        self.length, self.sizes, self.noise_deviation, self.dtype = length, task_dimensions, noise_deviation, dtype
        self.rng = np.random.Generator(np.random.SFC64(seed))
        self.dimension, self.tasks = sum(task_dimensions), len(task_dimensions)

    def normals(self, *shape):
        count = int(np.prod(shape))
        half = (count + 1) // 2
        radius, angle = self.rng.random(half, dtype=self.dtype), self.rng.random(half, dtype=self.dtype)
        normal = np.empty((2, half), self.dtype)
        np.subtract(1, radius, out=radius)  # (0, 1]
        np.log(radius, out=radius)
        radius *= self.dtype(-2)
        np.sqrt(radius, out=radius)
        angle *= self.dtype(2 * np.pi)
        np.cos(angle, out=normal[0])
        np.sin(angle, out=normal[1])
        normal *= radius
        return normal.reshape(-1)[:count].reshape(shape)

    def draw(self, count):
        tokens = self.normals(count, self.length, self.dimension)
        query = self.normals(count, self.dimension)
        signal = np.zeros((count, self.dimension, self.tasks), self.dtype)
        begin = 0
        for task, size in enumerate(self.sizes):
            signal[:, begin:begin + size, task] = self.normals(count, size)
            begin += size
        noise = self.normals(count, self.length, self.tasks)
        noise *= self.dtype(self.noise_deviation)
        return tokens, query, signal, noise


def acting(weights, score_scale, dimension):
    """key_query (H, n, d): scores z^T key_query q; output_value (H, I, n)."""
    key_query = score_scale * np.matmul(weights["K"].transpose(0, 2, 1), weights["Q"][:, :, :dimension])
    return key_query, np.matmul(weights["O"], weights["V"])


def forward_backward(tokens, query, responses_of, direction, output_value):
    """Loss and gradients with respect to `direction` (c, H, n) = key_query q and output_value, summed over contexts.

    responses_of(tokens, direction_x) -> responses (c, L, I), scores (c, L, H) from the covariates, target (c, I).
    """
    count, _, dimension = tokens.shape
    heads, tasks, n = output_value.shape
    direction_y = direction[:, :, dimension:]
    responses, scores, target = responses_of(tokens, direction[:, :, :dimension])
    for task in range(tasks):
        scores += responses[:, :, task, None] * direction_y[:, None, :, task]
    scores -= scores.max(axis=1, keepdims=True)
    p = np.exp(scores, out=scores)
    p /= p.sum(axis=1, keepdims=True)

    mean = np.empty((count, heads, n), tokens.dtype)
    mean[:, :, :dimension] = np.matmul(p.transpose(0, 2, 1), tokens)
    mean[:, :, dimension:] = np.matmul(p.transpose(0, 2, 1), responses)
    flat_mean = mean.reshape(count, heads * n)
    stacked = output_value.transpose(0, 2, 1).reshape(heads * n, tasks)
    residual = flat_mean @ stacked - target

    output_gradient = residual.T @ flat_mean  # I x (H n)
    mean_gradient = (residual @ stacked.T).reshape(count, heads, n)
    s = np.matmul(tokens, mean_gradient[:, :, :dimension].transpose(0, 2, 1))
    for task in range(tasks):
        s += responses[:, :, task, None] * mean_gradient[:, None, :, dimension + task]
    # softmax backward: sum_l p_l (dloss/dp_l) = <mean, dloss/dmean>
    s -= np.einsum("chn,chn->ch", mean, mean_gradient)[:, None, :]
    s *= p
    direction_gradient = np.empty_like(mean)
    direction_gradient[:, :, :dimension] = np.matmul(s.transpose(0, 2, 1), tokens)
    direction_gradient[:, :, dimension:] = np.matmul(s.transpose(0, 2, 1), responses)
    key_query_gradient = direction_gradient.reshape(count, heads * n).T @ query  # (H n) x d
    loss = 0.5 * float(np.vdot(residual, residual))
    return loss, key_query_gradient, output_gradient


def pull_back(weights, score_scale, dimension, key_query_gradient, output_value_gradient):
    """Gradients of the acting blocks -> gradients of K, Q, V, O."""
    gradient = {name: np.zeros_like(value) for name, value in weights.items()}
    gradient["K"] = score_scale * np.matmul(weights["Q"][:, :, :dimension], key_query_gradient.transpose(0, 2, 1))
    gradient["Q"][:, :, :dimension] = score_scale * np.matmul(weights["K"], key_query_gradient)
    gradient["O"] = np.matmul(output_value_gradient, weights["V"].transpose(0, 2, 1))
    gradient["V"] = np.matmul(weights["O"].transpose(0, 2, 1), output_value_gradient)
    return gradient


def gradient_of(weights, score_scale, batch, chunks):
    """Mean loss and gradient; chunks yields (tokens, query, responses_of)."""
    dimension = weights["Q"].shape[2] - weights["O"].shape[1]
    heads, tasks, n = weights["K"].shape[0], weights["O"].shape[1], weights["K"].shape[2]
    key_query, output_value = acting(weights, score_scale, dimension)
    stacked = key_query.reshape(heads * n, dimension)
    loss, key_query_sum, output_sum = 0.0, 0.0, 0.0
    for tokens, query, responses_of in chunks:
        direction = (query @ stacked.T).reshape(-1, heads, n)
        part = forward_backward(tokens, query, responses_of, direction, output_value)
        loss, key_query_sum, output_sum = loss + part[0], key_query_sum + part[1], output_sum + part[2]
    output_sum = output_sum.reshape(tasks, heads, n).transpose(1, 0, 2)
    dtype = weights["K"].dtype.type
    return loss / batch, pull_back(weights, score_scale, dimension, key_query_sum.reshape(heads, n, dimension) / dtype(batch),
                                   output_sum / dtype(batch))


def given_chunks(tokens, responses, query, target):
    """The whole of a given batch as one chunk (for checks)."""
    yield tokens, query, lambda x, direction_x: (responses, np.matmul(x, direction_x.transpose(0, 2, 1)), target)


def fresh_chunks(contexts, batch, chunk):
    tasks = contexts.tasks
    for begin in range(0, batch, chunk):
        tokens, query, signal, noise = contexts.draw(min(chunk, batch - begin))

        def responses_of(x, direction_x, query=query, signal=signal, noise=noise):
            # Responses and scores of the covariates in one product.
            both = np.matmul(x, np.concatenate([signal, direction_x.transpose(0, 2, 1)], axis=2))
            return both[:, :, :tasks] + noise, both[:, :, tasks:].copy(), np.matmul(query[:, None, :], signal)[:, 0, :]

        yield tokens, query, responses_of


def initial_weights(task_dimensions, heads, dtype, seed):
    """Dense random weights of the size that training starts from."""
    tasks, n = len(task_dimensions), sum(task_dimensions) + len(task_dimensions)
    rng = np.random.default_rng(seed)
    shapes = {"K": (heads, n, n), "Q": (heads, n, n), "V": (heads, n, n), "O": (heads, tasks, n)}
    return {name: (0.1 * rng.standard_normal(shape)).astype(dtype) for name, shape in shapes.items()}


class Step:
    """gradient() does what `iclflow` does for one step: fresh contexts, loss, gradient of every weight."""

    def __init__(self, length, task_dimensions, heads, batch, noise_deviation, dtype, chunk, seed=1):
        self.contexts = Contexts(length, task_dimensions, noise_deviation, dtype, seed)
        self.weights = initial_weights(task_dimensions, heads, dtype, seed)
        self.batch, self.chunk = batch, chunk

    def gradient(self):
        return gradient_of(self.weights, self.weights["K"].dtype.type(1.0), self.batch,
                           fresh_chunks(self.contexts, self.batch, self.chunk))
