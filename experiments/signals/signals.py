"""Signals at random moments: signals.py MERCER RESULTS_FOLDER SMOKE MOMENTS.

Each kind of work is one `fit --checkpoint` that spends most of its time in one place: products with the kernel matrix,
Cholesky factorisations, Vecchia factors, the search for neighbours. It is run once undisturbed, then stopped by each signal
at random moments and resumed. Standard error is a terminal of our own, so that the program draws its progress ten times a
second and the stage that a signal hit is known; where there is gdb, a look at the stack just before the signal says what was
being computed.
"""

import csv
import hashlib
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Rows, words of `generate`, words of `fit`. Sizes for some 10 seconds on two idle cores.
WORK = {
    ("regression", "products"): (6000, ("friedman", "-d", 5), ("--train", "adam", "--steps", 12, "--noise", 0.01, "--solver", "cg")),
    ("regression", "Cholesky"): (2400, ("friedman", "-d", 6), ("--train", "exact", "--restarts", 1)),
    ("regression", "Vecchia factors"): (8000, ("friedman", "-d", 5), ("--train", "vecchia", "--restarts", 0)),
    ("regression", "neighbour search"): (5000, ("friedman", "-d", 8), ("--train", "vecchia", "--kernel", "matern32 + rbf", "--steps", 3,
                                                                     "--restarts", 0)),
    ("regression", "default"): (4000, ("friedman", "-d", 5), ()),
    ("classes", "Cholesky"): (2200, ("gp", "-d", 3, "--likelihood", "bernoulli-logit", "--signal-variance", 4),
                              ("--train", "exact", "--restarts", 1)),
    ("classes", "products"): (6000, ("gp", "-d", 3, "--likelihood", "bernoulli-logit", "--signal-variance", 4),
                              ("--train", "adam", "--steps", 12, "--solver", "cg")),
    ("classes", "default"): (3000, ("gp", "-d", 3, "--likelihood", "bernoulli-logit", "--signal-variance", 4), ()),
}
SMOKE = {("regression", "Cholesky"): (150, ("friedman", "-d", 5), ("--train", "exact")),
         ("classes", "default"): (120, ("gp", "-d", 3, "--likelihood", "bernoulli-logit"), ())}
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "Ctrl-C": signal.SIGINT}
CODES = {"SIGKILL": -signal.SIGKILL, "SIGTERM": 143, "Ctrl-C": 130}
FIELDS = ["task", "work", "signal", "moment", "of", "stage", "computing", "said_after", "ended_after", "code", "checkpoint", "model", "resumed",
          "resumed_seconds"]
# What is being computed, from the innermost function on the stack that says so.
PLACES = (("neighbour search", r"NearestPoints|Neighbour|search_all|CorrelationTiles"),
          ("Vecchia factor", r"[Vv]ecchia"),
          ("low-rank factor", r"RpCholesky|PivotedCholesky|Nystrom"),
          ("Cholesky", r"linalg::(\w+::)*(Cholesky|cholesky)|potrf|factor_with_jitter|CurvedFactor"),
          ("product", r"operators::.*(apply|product|multiply|gradient|contract)|TiledOperator"),
          ("kernel matrix", r"dense_matrix|cross_matrix"),
          ("reading", r"data::"))
# Seconds that SIGTERM may take on an idle machine.
PROMPT = 3


class Run:
    """A run whose standard error is a terminal; what it writes there is kept with its times."""

    def __init__(self, words, cwd):
        master, slave = pty.openpty()
        self.began = time.monotonic()
        self.process = subprocess.Popen([str(w) for w in words], cwd=cwd, stdout=subprocess.DEVNULL, stderr=slave,
                                        env=dict(os.environ, TERM="xterm", NO_COLOR="1"), start_new_session=True)
        os.close(slave)
        self.pieces = []
        self.reader = threading.Thread(target=self.read, args=(master,))
        self.reader.start()

    def read(self, master):
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                os.close(master)
                return
            self.pieces.append((time.monotonic(), data.decode(errors="replace")))

    def end(self):
        self.process.wait()
        self.reader.join()
        return time.monotonic()

    def text(self):
        return "".join(piece for _, piece in self.pieces)

    def stage(self, until):
        """What the last progress line before this time says, without numbers that change."""
        lines = "".join(piece for at, piece in self.pieces if at <= until).replace("\x1b[K", "").replace("\n", "\r").split("\r")
        for line in reversed([each.strip() for each in lines]):
            if line and not line.startswith("mercer"):
                line = line.split("] ")[-1]
                return line.split(" %")[0].rstrip("0123456789 ").split(", about")[0].split(", step")[0]
        return "starting"


def computing(pid):
    """What the main thread is doing, or nothing where there is no gdb."""
    if not shutil.which("gdb"):
        return ""
    words = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "set print frame-arguments none", "-ex", "bt 80"]
    try:
        text = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False).stdout
    except subprocess.TimeoutExpired:
        return ""
    for frame in re.findall(r"^#\d+ .*$", text, re.MULTILINE):
        for name, pattern in PLACES:
            if re.search(pattern, frame):
                return name
    return ""


def digest(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def clear(folder, *names):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            os.remove(path)


def stopped(fit, folder, name, moment, whole, look):
    """One run, stopped after `moment` seconds, and the run that goes on from its checkpoint."""
    clear(folder, "m.mcr", "c.mck")
    run = Run(fit, folder)
    try:
        run.process.wait(moment)
    except subprocess.TimeoutExpired:
        doing = computing(run.process.pid) if look else ""
    if run.process.poll() is not None:  # it was done before
        run.end()
        return None
    run.process.send_signal(SIGNALS[name])
    sent = time.monotonic()
    ended = run.end()
    said = [at - sent for at, piece in run.pieces if at >= sent and ("interrupted" in piece or "SIGTERM" in piece)]
    left = [each for each in os.listdir(folder) if ".tmp-" in each]
    if left and name != "SIGKILL":
        print("temporary files were left:", *left)
    clear(folder, *left)
    row = {"signal": name, "moment": round(moment, 2), "stage": run.stage(sent), "computing": doing, "said_after": round(said[0], 3) if said else "",
           "ended_after": round(ended - sent, 3), "code": run.process.returncode,
           "checkpoint": "yes" if os.path.exists(os.path.join(folder, "c.mck")) else "none yet",
           "model": "yes" if os.path.exists(os.path.join(folder, "m.mcr")) else "no"}
    clear(folder, "m.mcr")
    again = Run(fit, folder)
    row["resumed_seconds"] = round(again.end() - again.began, 2)
    row["resumed"] = "same bytes" if digest(os.path.join(folder, "m.mcr")) == whole else "DIFFERENT"
    return row


def study(mercer, work, moments, folder, look):
    rows = []
    for task in ("regression", "classes"):
        kinds = [key for key in work if key[0] == task]
        reference = {}
        for index in range(moments):
            key = kinds[index % len(kinds)]
            points, data, words = work[key]
            place = os.path.join(folder, f"{task} {key[1]}")
            fit = (mercer, "fit", "d.csv", *words, "-m", "m.mcr", "--checkpoint", "c.mck", "--keep-unconverged", "--seed", 5)
            if key not in reference:
                os.makedirs(place)
                subprocess.run([mercer, "generate", *map(str, data), "-n", str(points), "--seed", "1", "-o", "d.csv", "--quiet"],
                               cwd=place, check=True)
                alone = Run(fit, place)
                seconds = alone.end() - alone.began
                reference[key] = (digest(os.path.join(place, "m.mcr")), seconds)
                print(f"{task}, {key[1]}: {points} rows, {seconds:.1f} s undisturbed, exit code {alone.process.returncode}")
                if reference[key][0] is None:
                    raise SystemExit("it made no model:\n" + alone.text())
            whole, seconds = reference[key]
            for name in SIGNALS:
                # The same moments on every machine, as shares of the whole; another one where the run was already done.
                moment = random.Random(f"{key} {name} {index}")
                row = None
                while row is None:
                    row = stopped(fit, place, name, moment.uniform(0.02, 0.95) * seconds, whole, look)
                rows.append({"task": task, "work": key[1], "of": round(seconds, 1), **row})
                print(rows[-1])
    return rows


def table(rows, out):
    print("| task | work | signal | stage | computing | at s | of s | said after s | ended after s | exit code | checkpoint | model | resumed |", file=out)
    print("|---|---|---|---|---|---:|---:|---:|---:|---:|---|---|---|", file=out)
    for r in rows:
        print(f"| {r['task']} | {r['work']} | {r['signal']} | {r['stage']} | {r['computing']} | {r['moment']} | {r['of']} | {r['said_after']} "
              f"| {r['ended_after']} | {r['code']} | {r['checkpoint']} | {r['model']} | {r['resumed']} |", file=out)
    print(file=out)
    for name in SIGNALS:
        ended = sorted(r["ended_after"] for r in rows if r["signal"] == name)
        if ended:
            print(f"{name}: {len(ended)} stops, ended after {ended[len(ended) // 2]:.2f} s in the median, {ended[-1]:.2f} s at most\n", file=out)


def faults(rows, prompt):
    for r in rows:
        if r["resumed"] != "same bytes":
            yield f"not resumed to the same bytes: {r}"
        # A run that was just ending may end as if nothing had happened.
        if r["code"] not in (0, 5, CODES[r["signal"]]) and not (r["code"] == -SIGNALS[r["signal"]] and r["stage"] == "starting"):
            yield f"exit code {r['code']}: {r}"
        if r["signal"] == "SIGTERM" and r["ended_after"] > prompt:
            yield f"SIGTERM took {r['ended_after']} s: {r}"


def main():
    mercer, results, smoke, moments = sys.argv[1:]
    # Run in the background it may be ignored, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        rows = study(os.path.abspath(mercer), SMOKE if smoke else WORK, 2 if smoke else int(moments), folder,
                     look=not smoke)
    with open(os.path.join(results, "signals.csv"), "w", newline="") as file:
        out = csv.DictWriter(file, FIELDS)
        out.writeheader()
        out.writerows(rows)
    with open(os.path.join(results, "tables.md"), "w") as file:
        table(rows, file)
    table(rows, sys.stdout)
    found = list(faults(rows, 30 if smoke else PROMPT))  # tests share their machine
    print("\n".join(found) if found else "every run ended as promised")
    sys.exit(1 if found else 0)


main()
