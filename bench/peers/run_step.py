"""Times one peer's gradient step: run_step.py numpy|torch|unfused single|double SECONDS L d_x d_y H BATCH -> JSON on stdout."""

import json
import sys
import time

import numpy as np


def make_step(peer, precision, length, task_dimensions, heads, batch):
    noise_deviation = 0.1**0.5
    if peer == "torch":
        import attention_torch
        return attention_torch.Step(length, task_dimensions, heads, batch, noise_deviation, precision)
    if peer == "unfused":
        import attention_unfused
        return attention_unfused.Step(length, task_dimensions, heads, batch, noise_deviation, precision)
    import attention_numpy
    dtype = np.float32 if precision == "single" else np.float64
    # Chunks whose tokens stay in the second-level cache.
    chunk = max(1, round(40 * 5000 / (length * sum(task_dimensions))))
    return attention_numpy.Step(length, task_dimensions, heads, batch, noise_deviation, dtype, min(batch, chunk))


def main():
    peer, precision, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    length, dimension, tasks, heads, batch = map(int, sys.argv[4:9])
    step = make_step(peer, precision, length, [dimension // tasks] * tasks, heads, batch)
    step.gradient()  # warm up
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        step.gradient()
        times.append(1e3 * (time.perf_counter() - start))
    json.dump({"milliseconds": times}, sys.stdout)


if __name__ == "__main__":
    main()
