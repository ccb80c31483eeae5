#!/usr/bin/env python3
"""Coefficients of the stabilised explicit method of order 4 (stepper "rock4"), derived as theory/10-steppers.md says.

usage: theory/rock4_coefficients.py   prints the rows of src/integrate/rock4_coefficients.hpp

For each number of stages s: the real stability interval [-l, 0], the coefficients a_ij, b_j of the four finishing stages, and the
weights d_j of the error estimate. The other m = s - 4 stages follow from these (rock4.cpp).
"""
import math

import numpy as np

STAGES = [5, 6, 7, 8, 9, 10, 12, 14, 16, 19, 22, 26, 30, 35, 41, 48, 56, 66, 77, 90, 106, 124, 145, 170, 200]
LARGEST = 0.9  # |R| beyond z = -3: damping of what is not resolved
EXPONENTIAL = np.array([1 / math.factorial(k) for k in range(5)])


def orthogonal(m, quartic, l):
    """alpha, beta of the monic polynomials orthogonal to quartic(z(x))^2 / sqrt(1 - x^2), z = l (x - 1) / 2."""
    nodes = m + 8
    x = np.cos((np.arange(nodes) + 0.5) * np.pi / nodes)
    weight = np.polyval(quartic[::-1], l * (x - 1) / 2) ** 2
    before, p, norm = np.zeros(nodes), np.ones(nodes), None
    alpha, beta = [], []
    for _ in range(m):
        last, norm = norm, np.sum(weight * p * p)
        alpha.append(np.sum(weight * x * p * p) / norm)
        beta.append(0.0 if last is None else norm / last)
        before, p = p, (x - alpha[-1]) * p - beta[-1] * before
    return alpha, beta


def recurrence(m, quartic, l):
    """mu, nu, kappa of K_j = mu_j h f(K_{j-1}) + nu_j K_{j-1} + kappa_j K_{j-2}, normalised so that nu + kappa = 1."""
    rows, ratio = [], 0.0
    for a, b in zip(*orthogonal(m, quartic, l)):
        value = (1 - a) - b * ratio
        rows.append((2 / l / value, (1 - a) / value, -b * ratio / value))
        ratio = 1 / value
    return rows


def stability(m, quartic, l, z):
    before, p = np.zeros_like(z), np.ones_like(z)
    for mu, nu, kappa in recurrence(m, quartic, l):
        before, p = p, (mu * z + nu) * p + kappa * before
    return p * np.polyval(quartic[::-1], z)


def quartic_of(m, quartic, l):
    """The four terms of exp(z) / P_m(z), P_m made with `quartic`: order 4 means that this is quartic again."""
    before, p = np.zeros(5), np.array([1.0, 0, 0, 0, 0])
    for mu, nu, kappa in recurrence(m, quartic, l):
        before, p = p, nu * p + kappa * before + mu * np.concatenate([[0], p[:4]])
    w = np.zeros(5)
    for k in range(5):
        w[k] = EXPONENTIAL[k] - sum(w[j] * p[k - j] for j in range(k))
    return w


def fixed_point(m, quartic, l):
    scale = l ** np.arange(1, 5)
    full = lambda u: np.concatenate([[1], u / scale])
    excess = lambda u: quartic_of(m, full(u), l)[1:] * scale - u
    u = quartic[1:] * scale
    for _ in range(60):
        f = excess(u)
        if np.max(np.abs(f / u)) < 1e-13:
            break
        jacobian = np.zeros((4, 4))
        for k in range(4):
            moved = u.copy()
            moved[k] += 1e-6 * abs(u[k])
            jacobian[:, k] = (excess(moved) - f) / (moved[k] - u[k])
        change = np.linalg.solve(jacobian, -f)
        u = u + min(1, 0.3 / np.max(np.abs(change / u))) * change
    return full(u)


def interval(m, quartic):
    """The longest l whose damping suffices, by bisection, and its quartic."""
    low, high = 0.1, 0.37
    quartic = fixed_point(m, quartic, 0.3 * (m + 4) ** 2)
    for _ in range(45):
        middle = 0.5 * (low + high)
        l = middle * (m + 4) ** 2
        quartic = fixed_point(m, quartic, l)
        damped = np.abs(stability(m, quartic, l, np.linspace(-l, -3, 20001))).max() < LARGEST
        low, high = (middle, high) if damped else (low, middle)
    l = float(f"{low * (m + 4) ** 2:.6g}")
    return l, fixed_point(m, quartic, l)


def tree_weights(m, quartic, l):
    """Of K_m for the trees up to order 4: t, [t], [tt], [[t]], [ttt], [t[t]], [[tt]], [[[t]]]."""
    of_velocity = lambda a: np.array([1, a[0], a[0] ** 2, a[1], a[0] ** 3, a[0] * a[1], a[2], a[3]])
    before, a = np.zeros(8), np.zeros(8)
    for mu, nu, kappa in recurrence(m, quartic, l):
        before, a = a, mu * of_velocity(a) + nu * a + kappa * before
    return a


def remaining_weights(a):
    """What four stages that start from K_m must have for the whole to be of order 4."""
    a1, a2, a31, a32, a41, a42, a43, a44 = a
    w1 = 1 - a1
    w2 = 1 / 2 - w1 * a1 - a2
    w31 = 1 / 3 - a31 - w1 * a1**2 - 2 * a1 * w2
    w32 = 1 / 6 - a32 - w1 * a2 - a1 * w2
    w41 = 1 / 4 - a41 - w1 * a1**3 - 3 * a1**2 * w2 - 3 * a1 * w31
    w42 = 1 / 8 - a42 - a1 * (w1 * a2 + a1 * w2 + w32) - a2 * w2 - a1 * w31
    w43 = 1 / 12 - a43 - w1 * a31 - a1**2 * w2 - 2 * a1 * w32
    w44 = 1 / 24 - a44 - w1 * a32 - a2 * w2 - a1 * w32
    return w1, w2, w31, w32, w41, w42, w43, w44


def finishing(w, c4):
    """a_ij, b_j with c2 = 0.3 w1, c3 = 0.6 w1, and what is left of the last condition."""
    w1, w2, w31, w32, w41, w42, w43, w44 = w
    c2, c3 = 0.3 * w1, 0.6 * w1
    b = np.linalg.solve(np.vander([0, c2, c3, c4], increasing=True).T, [w1, w2, w31, w41])
    u, v = np.linalg.solve([[b[2], b[3]], [b[2] * c3, b[3] * c4]], [w32, w42])
    a32 = u / c2
    a43 = (w43 - b[2] * u * c2 - b[3] * v * c2) / (b[3] * c3 * (c3 - c2))
    a42 = (v - a43 * c3) / c2
    return [c2, c3 - a32, a32, c4 - a42 - a43, a42, a43], b, b[3] * a43 * u - w44


def solve_finishing(w):
    low, high = 1.02 * w[0], 1.08 * w[0]
    sign = finishing(w, low)[2]
    assert sign * finishing(w, high)[2] < 0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sign * finishing(w, middle)[2] > 0 else (low, middle)
    return finishing(w, low)


def error_weights(w, a, b):
    """d with sum d = sum d c = sum d c^2 = sum d (a c) = 0 over the four stages and the end; sum d a a c = 0.02 / 24."""
    a21, a31, a32, a41, a42, a43 = a
    c = np.array([0, a21, a31 + a32, a41 + a42 + a43, w[0]])
    ac = np.array([0, 0, a32 * c[1], a42 * c[1] + a43 * c[2], w[1]])
    aac = np.array([0, 0, 0, a43 * ac[2], w[3]])
    d = np.linalg.svd(np.array([np.ones(5), c, c**2, ac]))[2][-1]
    return d * (0.02 / 24 / (d @ aac))


def main():
    quartic = np.array([1, 0.68, 0.24, 0.057, 0.0105])
    for s in STAGES:
        l, quartic = interval(s - 4, quartic)
        w = remaining_weights(tree_weights(s - 4, quartic, l))
        a, b, left = solve_finishing(w)
        assert abs(left) < 1e-13 and np.allclose(quartic[1:], [w[0], w[1], w[3], w[7]], rtol=1e-9)
        numbers = ", ".join(repr(float(x)) for x in [*a, *b, *error_weights(w, a, b)])
        print(f"{{{s}, {l:g}, {{{numbers}}}}},")


if __name__ == "__main__":
    main()
