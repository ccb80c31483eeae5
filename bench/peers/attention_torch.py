"""The step of attention_numpy.py in PyTorch: the same products, the same chunks, the backward written out."""

import torch


class Step:
    def __init__(self, length, task_dimensions, heads, batch, noise_deviation, precision, chunk=100, seed=1):
        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        torch.manual_seed(seed)
        self.dtype = torch.float32 if precision == "single" else torch.float64
        self.length, self.sizes, self.heads, self.batch = length, task_dimensions, heads, batch
        self.noise_deviation, self.chunk = noise_deviation, chunk
        self.dimension, self.tasks = sum(task_dimensions), len(task_dimensions)
        n = self.dimension + self.tasks
        shapes = {"K": (heads, n, n), "Q": (heads, n, n), "V": (heads, n, n), "O": (heads, self.tasks, n)}
        self.weights = {name: 0.1 * torch.randn(shape, dtype=self.dtype) for name, shape in shapes.items()}

    def draw(self, count):
        """Tokens (c, L, d + I), query (c, d), target (c, I): responses are written beside the covariates."""
        query = torch.randn(count, self.dimension, dtype=self.dtype)
        signal = torch.zeros(count, self.dimension, self.tasks, dtype=self.dtype)
        begin = 0
        for task, size in enumerate(self.sizes):
            signal[:, begin:begin + size, task] = torch.randn(count, size, dtype=self.dtype)
            begin += size
        covariates = torch.randn(count, self.length, self.dimension, dtype=self.dtype)
        noise = torch.randn(count, self.length, self.tasks, dtype=self.dtype).mul_(self.noise_deviation)
        responses = torch.baddbmm(noise, covariates, signal)
        return covariates, responses, query, torch.bmm(query[:, None, :], signal)[:, 0, :]

    def gradient(self):
        loss, key_query, output = 0.0, 0.0, 0.0
        for begin in range(0, self.batch, self.chunk):
            part = self.forward_backward(*self.draw(min(self.chunk, self.batch - begin)))
            loss, key_query, output = loss + part[0], key_query + part[1], output + part[2]
        return loss / self.batch, self.pull_back(key_query / self.batch, output / self.batch)

    def forward_backward(self, x, y, query, target):
        """Sums over the contexts: loss, gradients of key_query ((H n) x d) and of output_value (I x (H n))."""
        d, heads, n = self.dimension, self.heads, self.dimension + self.tasks
        w = self.weights
        key_query = torch.bmm(w["K"].transpose(1, 2), w["Q"][:, :, :d]).reshape(heads * n, d)
        stacked = torch.bmm(w["O"], w["V"]).transpose(1, 2).reshape(heads * n, self.tasks)
        direction = (query @ key_query.T).reshape(-1, heads, n)
        scores = torch.bmm(x, direction[:, :, :d].transpose(1, 2)).baddbmm_(y, direction[:, :, d:].transpose(1, 2))
        p = torch.softmax(scores, dim=1)
        mean = torch.cat([torch.bmm(p.transpose(1, 2), x), torch.bmm(p.transpose(1, 2), y)], dim=2)
        flat_mean = mean.reshape(-1, heads * n)
        residual = flat_mean @ stacked - target
        mean_gradient = (residual @ stacked.T).reshape(-1, heads, n)
        s = torch.bmm(x, mean_gradient[:, :, :d].transpose(1, 2)).baddbmm_(y, mean_gradient[:, :, d:].transpose(1, 2))
        s = (s - (mean * mean_gradient).sum(2)[:, None, :]).mul_(p)
        direction_gradient = torch.cat([torch.bmm(s.transpose(1, 2), x), torch.bmm(s.transpose(1, 2), y)], dim=2)
        return (0.5 * float((residual * residual).sum()), direction_gradient.reshape(-1, heads * n).T @ query,
                residual.T @ flat_mean)

    def pull_back(self, key_query, output):
        d, heads, n, w = self.dimension, self.heads, self.dimension + self.tasks, self.weights
        key_query = key_query.reshape(heads, n, d)
        output = output.reshape(self.tasks, heads, n).transpose(0, 1)
        query_gradient = torch.zeros_like(w["Q"])
        query_gradient[:, :, :d] = torch.bmm(w["K"], key_query)
        return {"K": torch.bmm(w["Q"][:, :, :d], key_query.transpose(1, 2)), "Q": query_gradient,
                "V": torch.bmm(w["O"].transpose(1, 2), output), "O": torch.bmm(output, w["V"].transpose(1, 2))}
