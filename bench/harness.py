"""What the benchmarks share: one pinned core, programs that take turns, Markdown.

A pinned thread's speed varies within seconds, so programs take turns: every round runs each of them once, and a ratio is
taken within a round. Reported are the minimum, the median, and the median ratio with its range over the rounds.
"""

import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
PEERS = ROOT / "bench" / "peers"
PYTHON = "/usr/bin/python3"

sys.path.insert(0, str(PEERS))


def pin():
    """This process and its children on one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def environment():
    """One thread; OpenBLAS chooses the kernels of this machine."""
    chosen = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    return chosen | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def installed(module):
    return importlib.util.find_spec(module) is not None


def google(name, seconds, repetitions=3, cores=None):
    """Runs of the Google Benchmark of exactly this name: list of its JSON objects. cores: unpinned on those."""
    command = [BUILD / "bench" / "iclflow_bench", f"--benchmark_filter=^{name}$", "--benchmark_format=json",
               f"--benchmark_min_time={seconds / repetitions}", f"--benchmark_repetitions={repetitions}"]
    before = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(),
                            preexec_fn=before).stdout
    return [run for run in json.loads(output)["benchmarks"] if run["run_type"] == "iteration"]


def peer(script, *arguments):
    """JSON that a peer prints."""
    command = [PYTHON, PEERS / script, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment()).stdout)


def interleave(programs, rounds):
    """programs: name -> function giving a list of times. Result: name -> list over rounds of such lists."""
    runs = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            runs[name].append(program())
    return runs


def ratios(runs, name, base):
    return [statistics.median(one) / statistics.median(other) for one, other in zip(runs[name], runs[base])]


def spread(values, digits=2):
    """median (smallest-largest)"""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def least_and_median(runs, digits=2):
    times = [time for run in runs for time in run]
    return f"{min(times):.{digits}f}", f"{statistics.median(times):.{digits}f}"


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells):
    row(*cells)
    row(*["---"] * len(cells))


def version(module):
    command = [PYTHON, "-c", f"import {module}; print({module}.__version__)"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return f"{module} {done.stdout.strip()}" if done.returncode == 0 else f"no {module}"


def machine():
    """One paragraph: processor, compiler, peers."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    compiler = subprocess.run(["g++", "--version"], stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]
    program = subprocess.run([BUILD / "iclflow", "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
    peers = ", ".join(version(module) for module in ("numpy", "scipy", "torch"))
    load = os.getloadavg()[0]
    print(f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}; {compiler}; "
          f"{program}; {peers} (OpenBLAS); load average at the start {load:.1f}.\n")
