"""Chains of `mercer sample` for the studies: running it, reading its draws, and diagnostics in NumPy that share no code with mercer."""

import csv
import gzip
import json
import os
import re
import subprocess

import numpy as np
from scipy import stats

PARAMETERS = ["signal_variance", "lengthscale", "noise_variance"]


def samplers(mercer):
    """Names that this program has, from its help page."""
    page = subprocess.run([mercer, "sample", "--help"], capture_output=True, text=True, check=True).stdout
    listed = page.split("--sampler NAME", 1)[1].split(":", 1)[0]
    return [name.strip() for name in re.sub(r"\s+", " ", listed).split("|")]


def sample(mercer, data, *words):
    """The record of a run, and what it said; no record where it kept no draw (exit code 5)."""
    command = [str(w) for w in (mercer, "sample", data, *words, "--json", "--quiet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):
        raise SystemExit(" ".join(command) + "\n" + done.stderr)
    try:
        record = json.loads(done.stdout)
    except json.JSONDecodeError:
        record = {}
    return (None if "parameters" not in record else record), done.stderr


def read(path):
    """(names, iterations, logarithms of the draws: iterations x chains x parameters)."""
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path, newline="")) as file:
        header, *rows = csv.reader(line for line in file if not line.startswith("#"))
    table = np.array(rows, dtype=float)
    chains = int(table[:, 0].max())
    draws = np.log(table[:, 2:].reshape(chains, -1, table.shape[1] - 2).transpose(1, 0, 2))
    return header[2:], table[: len(draws), 1].astype(int), draws


def psrf(x):
    """Gelman & Rubin's factor of iterations x chains as R's coda has it: the estimate and its upper 97.5 % limit."""
    n, m = x.shape
    means, variances = x.mean(0), x.var(0, ddof=1)
    within, between = variances.mean(), n * means.var(ddof=1)
    if within == 0:
        return float("nan"), float("nan")
    var_w, var_b = variances.var(ddof=1) / m, 2 * between**2 / (m - 1)
    cov_wb = n / m * (np.cov(variances, means**2)[0, 1] - 2 * means.mean() * np.cov(variances, means)[0, 1])
    v = (n - 1) * within / n + (1 + 1 / m) * between / n
    var_v = ((n - 1) ** 2 * var_w + (1 + 1 / m) ** 2 * var_b + 2 * (n - 1) * (1 + 1 / m) * cov_wb) / n**2
    df = 2 * v**2 / var_v
    adjustment = (df + 3) / (df + 1)
    fixed, random = (n - 1) / n, (1 + 1 / m) / n * between / within
    upper = stats.f.ppf(0.975, m - 1, 2 * within**2 / var_w)
    return float(np.sqrt(adjustment * (fixed + random))), float(np.sqrt(adjustment * (fixed + upper * random)))


def psrf_curve(draws, count=60):
    """(draws of a chain so far, estimate, upper limit) of iterations x chains; the first half of the draws so far is left out, as in coda."""
    least = min(20, len(draws))
    lengths = np.unique(np.geomspace(least, len(draws), count).astype(int))
    return [(int(n), *psrf(draws[n // 2 : n])) for n in lengths if n - n // 2 >= 4]


def _autocovariance(x):
    centred = x - x.mean(0)
    size = 2 ** int(np.ceil(np.log2(2 * len(x))))
    spectrum = np.fft.rfft(centred, size, axis=0)
    return np.fft.irfft(np.abs(spectrum) ** 2, size, axis=0)[: len(x)] / len(x)


def ess(x):
    """Effective draws of iterations x chains for their mean: Geyer's initial monotone sequence over all chains, each split in two."""
    half = len(x) // 2
    x = np.hstack([x[:half], x[half : 2 * half]])
    n, m = x.shape
    covariance = _autocovariance(x).mean(1)
    total = covariance[0] + x.mean(0).var(ddof=1)
    if total == 0:
        return float("nan")
    rho = 1 - (covariance[0] * n / (n - 1) - covariance) / total
    rho[0] = 1
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(1)
    end = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    tau = max(-1 + 2 * np.minimum.accumulate(pairs[:end]).sum(), 1 / np.log10(n * m))
    return float(n * m / tau)


def summary(draws, names):
    """A record per parameter of iterations x chains x parameters: mean, sd and their Monte Carlo errors, effective draws, PSRF."""
    out = []
    for i, name in enumerate(names):
        x = draws[:, :, i]
        mean, sd, effective = x.mean(), x.std(ddof=1), ess(x)
        squares = (x - mean) ** 2
        mcse_sd = np.sqrt((np.mean(squares**2) - squares.mean() ** 2) / ess(squares) / squares.mean() / 4)
        estimate, upper = psrf(x) if x.shape[1] > 1 else ("", "")
        out.append({"parameter": name, "mean": mean, "sd": sd, "ess": effective, "mcse_mean": sd / np.sqrt(effective), "mcse_sd": mcse_sd,
                    "psrf": estimate, "psrf_upper": upper})
    return out


def running(chain, count=200):
    """(draw, running mean, running sd) of one chain of one parameter at some draws."""
    lengths = np.unique(np.linspace(min(10, len(chain)), len(chain), count).astype(int))
    sums, squares = np.cumsum(chain), np.cumsum(chain**2)
    return [(int(n), sums[n - 1] / n, float(np.sqrt(max(squares[n - 1] / n - (sums[n - 1] / n) ** 2, 0)))) for n in lengths]


def chains_folder(results):
    """For chains and checkpoints, which are large: git does not see it."""
    folder = os.path.join(results, "chains")
    os.makedirs(folder, exist_ok=True)
    return folder
