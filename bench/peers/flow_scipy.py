"""The merged large-context flow in SciPy: velocity and Jacobian in NumPy, any method of solve_ivp.

usage: flow_scipy.py CASES NAME METHOD BLOCKS START LIMIT   START: JSON list of flat (mu, omega); BLOCKS 1 or 0; LIMIT: seconds
Prints JSON: [{"seconds", "loss", "velocities"}], loss null where the limit was reached.
"""

import json
import sys
import time

import numpy as np
from scipy.integrate import solve_ivp


class Flow:
    def __init__(self, case, blocks):
        self.heads, dimensions = case["heads"], np.array(case["dimensions"])
        self.tasks = len(dimensions)
        unit = case.get("response") == "unit"
        self.power = dimensions.astype(float) if unit else dimensions / dimensions.sum()
        self.task = np.arange(self.tasks) if blocks else np.repeat(np.arange(self.tasks), dimensions)
        self.multiplicity = dimensions.astype(float) if blocks else np.ones(dimensions.sum())
        self.bias = self.multiplicity * (self.power / dimensions)[self.task]
        self.noise = (self.power + case.get("noise", 0.0)) / case["length"]
        self.begin = np.concatenate([[0], np.cumsum(np.ones(self.tasks) if blocks else dimensions)[:-1]]).astype(int)
        self.velocities, self.deadline = 0, np.inf
        self.speed = np.concatenate([np.ones(self.heads * self.tasks), np.tile(1 / self.multiplicity, self.heads)])

    def parts(self, y):
        split = self.heads * self.tasks
        mu, omega = y[:split].reshape(self.heads, -1), y[split:].reshape(self.heads, -1)
        repeated = mu[:, self.task]
        weighted = omega * self.multiplicity
        return mu, omega, repeated, weighted, np.exp(weighted @ omega.T), 1 - np.einsum("hk,hk->k", repeated, omega)

    def loss(self, y):
        mu, _, _, _, correlation, residual = self.parts(y)
        return 0.5 * (self.bias @ residual**2 + (self.noise * np.einsum("hi,hg,gi->i", mu, correlation, mu)).sum())

    def velocity(self, _, y):
        self.velocities += 1
        if time.perf_counter() > self.deadline:
            raise TimeoutError
        mu, omega, repeated, weighted, correlation, residual = self.parts(y)
        pull = self.bias * residual
        noisy = mu * self.noise
        of_mu = correlation @ noisy - np.add.reduceat(pull * omega, self.begin, axis=1)
        of_omega = (correlation * (noisy @ mu.T)) @ weighted - pull * repeated
        return -np.concatenate([of_mu.ravel(), of_omega.ravel()]) * self.speed

    def jacobian(self, _, y):
        """Entry by entry as in theory/03: all heads at once."""
        mu, omega, repeated, weighted, correlation, residual = self.parts(y)
        heads, tasks, size = self.heads, self.tasks, len(self.task)
        attraction = correlation * ((mu * self.noise) @ mu.T)
        member = (self.task[:, None] == np.arange(tasks)).astype(float)
        same = np.eye(heads)
        mm = np.einsum("hg,i,ij->higj", correlation, self.noise, np.eye(tasks))
        mm += np.einsum("k,hk,gk,ki,kj->higj", self.bias, omega, omega, member, member, optimize=True)
        mo = np.einsum("hg,gi,i,hk->higk", correlation, mu, self.noise, weighted, optimize=True)
        mo += np.einsum("hg,hf,fi,i,fk->higk", same, correlation, mu, self.noise, weighted, optimize=True)
        mo += np.einsum("ki,k,hk,gk->higk", member, self.bias, omega, repeated, optimize=True)
        mo -= np.einsum("ki,k,hg->higk", member, self.bias * residual, same, optimize=True)
        oo = np.einsum("hg,hl,gk->hkgl", attraction, weighted, weighted, optimize=True)
        oo += np.einsum("hg,hf,fk,fl->hkgl", same, attraction, weighted, weighted, optimize=True)
        diagonal = np.einsum("k,hk,gk->hgk", self.bias, repeated, repeated) + attraction[:, :, None] * self.multiplicity
        oo[:, np.arange(size), :, np.arange(size)] += diagonal.transpose(2, 0, 1)
        m, o = heads * tasks, heads * size
        cross = mo.reshape(m, o)
        return -self.speed[:, None] * np.block([[mm.reshape(m, m), cross], [cross.T, oo.reshape(o, o)]])


def main():
    cases, name, method, blocks, start, limit = sys.argv[1:]
    with open(cases, encoding="utf-8") as file:
        case = next(c for c in json.load(file) if c["name"] == name)
    flow, start = Flow(case, blocks == "1"), np.array(json.loads(start))
    implicit = {"jac": flow.jacobian} if method in ("BDF", "Radau", "LSODA") else {}
    begin, loss = time.perf_counter(), None
    flow.deadline = begin + float(limit)
    try:
        result = solve_ivp(flow.velocity, (0, case["final"]), start, method=method, rtol=1e-8, atol=1e-12, **implicit)
        loss = flow.loss(result.y[:, -1])
    except TimeoutError:
        pass
    json.dump([{"seconds": time.perf_counter() - begin, "loss": loss, "velocities": flow.velocities}], sys.stdout)


if __name__ == "__main__":
    main()
