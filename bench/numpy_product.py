#!/usr/bin/env python3
"""K v for an RBF kernel in NumPy, the ways a careful user would write it.

    numpy_product.py DIR POINTS THREADS    reads DIR/x{3,8,26}.f64 (column-major doubles)

Prints lines "d columns precision seconds form" for bench/product_bench --numpy. Two forms:
  tiles   512 x 1024 tiles, GEMM then exp in place; one Python thread per core, each with one
          BLAS thread (NumPy releases the lock inside both)
  rows    blocks of 512 whole rows on one Python thread, BLAS on all threads
"""
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor


def tile_product(np, x, half, v, rows, width):
    """exp(x x' - |x|^2/2 - |x'|^2/2) v for some rows, `width` columns at a time."""
    y = np.zeros((rows.stop - rows.start, v.shape[1]), x.dtype)
    for start in range(0, len(x), width):
        columns = slice(start, min(start + width, len(x)))
        k = x[rows] @ x[columns].T
        k -= half[rows, None]
        k -= half[None, columns]
        np.exp(k, out=k)
        y += k @ v[columns]
    return y


def product(np, x, half, v, threads, width):
    blocks = [slice(i, min(i + 512, len(x))) for i in range(0, len(x), 512)]
    run = lambda rows: tile_product(np, x, half, v, rows, width)
    if threads == 1:
        return np.vstack([run(b) for b in blocks])
    with ThreadPoolExecutor(threads) as pool:
        return np.vstack(list(pool.map(run, blocks)))


def measure(folder, points, threads, form):
    import numpy as np

    for d in (3, 8, 26):
        raw = np.fromfile(f"{folder}/x{d}.f64").reshape(d, points).T / np.sqrt(d)
        for precision in ("float32", "float64"):
            x = np.ascontiguousarray(raw, dtype=precision)
            half = (x * x).sum(1) / 2
            for columns in (1, 16):
                v = np.random.default_rng(0).standard_normal((points, columns)).astype(precision)
                best = float("inf")
                began = time.perf_counter()
                while best == float("inf") or time.perf_counter() - began < 2:
                    start = time.perf_counter()
                    if form == "tiles":
                        product(np, x, half, v, threads, 1024)
                    else:
                        product(np, x, half, v, 1, points)
                    best = min(best, time.perf_counter() - start)
                print(d, columns, precision, best, form, flush=True)


def main():
    folder, points, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) > 4:
        return measure(folder, points, threads, sys.argv[4])
    for form, blas_threads in (("tiles", 1), ("rows", threads)):
        environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(blas_threads),
                           OMP_NUM_THREADS=str(blas_threads))
        subprocess.run([sys.executable, __file__, *sys.argv[1:4], form], check=True,
                       env=environment)


if __name__ == "__main__":
    main()
