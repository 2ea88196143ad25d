"""Runs every study in its smoke mode: smoke_test.py PROGRAM BUILD_FOLDER [STUDY...].

A study is a folder of experiments/ with a `run`. In smoke mode it works on small simulated data, so that an option or a key
of the JSON record that was renamed is noticed here and not after hours of a real run. A part that needs what is not installed
says `skipped: ...`; that is passed on.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "experiments"
TIMEOUT = 300  # of one study: a busy machine, a build with sanitizers


def results_of(folder):
    """Why the results cannot be right; empty when they may be."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix != ".err"]
    if not files:
        return "it left no results"
    empty = [path.name for path in files if path.stat().st_size == 0]
    if empty:
        return "empty results: " + ", ".join(empty)
    pictures = [path.name for path in files if path.suffix == ".svg" and "<svg" not in path.read_text()]
    return "no picture: " + ", ".join(pictures) if pictures else ""


def smoke(study, environment):
    """(what went wrong or '', the sentences about what was skipped)."""
    with tempfile.TemporaryDirectory(prefix="mercer-smoke-") as folder:
        try:
            done = subprocess.run([str(study / "run"), "smoke"], env={**environment, "SMOKE_RESULTS": folder}, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT,
                                  check=False)
        except subprocess.TimeoutExpired as late:
            return f"not done after {TIMEOUT} s\n{late.stdout}", []
        skipped = [line for line in done.stdout.splitlines() if line.startswith("skipped: ")]
        if done.returncode != 0:
            return f"exit code {done.returncode}\n{done.stdout}", skipped
        wrong = results_of(pathlib.Path(folder))
        if wrong and not skipped:
            return f"{wrong}\n{done.stdout}", skipped
    return "", skipped


def main():
    if len(sys.argv) < 3 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__.splitlines()[0])
    program, build, *names = sys.argv[1:]
    studies = sorted(path.parent for path in EXPERIMENTS.glob("*/run"))
    if not studies:
        sys.exit(f"no studies in {EXPERIMENTS}")
    without = [path.name for path in EXPERIMENTS.iterdir() if path.is_dir() and not (path / "run").exists()
               and path.name != "__pycache__"]
    environment = {**os.environ, "MERCER": os.path.abspath(program), "MERCER_BUILD": os.path.abspath(build),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    # The studies may not look at data that happen to be on this machine.
    environment["MERCER_DATA"] = "/nonexistent"
    failed = [f"{name}: no `run`" for name in without]
    for study in studies:
        if names and study.name not in names:
            continue
        start = time.monotonic()
        wrong, skipped = smoke(study, environment)
        print(f"{study.name}: {'FAILED' if wrong else 'ok'}, {time.monotonic() - start:.1f} s", *skipped, sep="\n  ", flush=True)
        if wrong:
            failed.append(f"{study.name}: {wrong}")
    print(*failed, sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
