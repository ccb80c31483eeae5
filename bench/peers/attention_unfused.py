"""The step of attention_numpy.py as a PyTorch user would write it first: nn.Linear K, Q, V, O over every token, autograd.

The form of the authors' program (arXiv:2402.19442): every context token is projected through the keys and values of all
heads, heads are a dimension of one tensor, the gradient comes from loss.backward().
"""

import torch
from torch import nn


class Attention(nn.Module):
    """yhat = sum_h O_h V_h Z softmax(Z^T K_h^T Q_h z_q); embedding e = d + I as in our split layer."""

    def __init__(self, dimension, tasks, heads):
        super().__init__()
        n = dimension + tasks
        self.heads, self.n = heads, n
        self.key, self.query, self.value = (nn.Linear(n, heads * n, bias=False) for _ in range(3))
        self.out = nn.Linear(heads * n, tasks, bias=False)

    def forward(self, tokens, query):
        count, length, _ = tokens.shape
        keys = self.key(tokens).view(count, length, self.heads, self.n).transpose(1, 2)
        values = self.value(tokens).view(count, length, self.heads, self.n).transpose(1, 2)
        queries = self.query(query).view(count, self.heads, self.n, 1)
        p = torch.softmax(torch.matmul(keys, queries)[..., 0], dim=-1)
        return self.out(torch.matmul(p[:, :, None, :], values).reshape(count, self.heads * self.n))


class Step:
    def __init__(self, length, task_dimensions, heads, batch, noise_deviation, precision, seed=1):
        torch.set_num_threads(1)
        torch.set_grad_enabled(True)
        torch.manual_seed(seed)
        self.dtype = torch.float32 if precision == "single" else torch.float64
        self.length, self.sizes, self.batch, self.noise_deviation = length, task_dimensions, batch, noise_deviation
        self.dimension, self.tasks = sum(task_dimensions), len(task_dimensions)
        self.layer = Attention(self.dimension, self.tasks, heads).to(self.dtype)
        with torch.no_grad():
            for parameter in self.layer.parameters():
                parameter.normal_(0, 0.1)

    def draw(self):
        covariates = torch.randn(self.batch, self.length, self.dimension, dtype=self.dtype)
        query = torch.randn(self.batch, self.dimension, dtype=self.dtype)
        signal = torch.zeros(self.batch, self.dimension, self.tasks, dtype=self.dtype)
        begin = 0
        for task, size in enumerate(self.sizes):
            signal[:, begin:begin + size, task] = torch.randn(self.batch, size, dtype=self.dtype)
            begin += size
        noise = self.noise_deviation * torch.randn(self.batch, self.length, self.tasks, dtype=self.dtype)
        responses = torch.bmm(covariates, signal) + noise
        padded_query = torch.cat([query, torch.zeros(self.batch, self.tasks, dtype=self.dtype)], dim=1)
        return torch.cat([covariates, responses], dim=2), padded_query, torch.bmm(query[:, None, :], signal)[:, 0, :]

    def gradient(self):
        tokens, query, target = self.draw()
        self.layer.zero_grad()
        loss = 0.5 * (self.layer(tokens, query) - target).square().sum(1).mean()
        loss.backward()
        return float(loss), {name: parameter.grad for name, parameter in self.layer.named_parameters()}
