"""What the cases share: a way to run the program, data, and a model fitted once."""

import atexit
import csv
import functools
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

# Long enough for a loaded machine and for a build with sanitizers; nothing here takes a tenth of it.
TIMEOUT = 600


def run(*words, stdin=None, cwd=None, env=None, stdout=subprocess.PIPE):
    """The finished process; output as text."""
    command = [os.environ["MERCER_PROGRAM"], *map(str, words)]
    return subprocess.run(command, input=stdin, cwd=cwd, env=env, stdout=stdout,
                          stderr=subprocess.PIPE, text=not isinstance(stdin, bytes),
                          timeout=TIMEOUT, check=False)


def start(*words, cwd=None, stdin=None):
    """A process left running."""
    command = [os.environ["MERCER_PROGRAM"], *map(str, words)]
    return subprocess.Popen(command, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


# Linux counts what a process was before it became another program into its peak memory, and the tests may be large: a
# small process starts the program and writes its exit code and its peak in bytes to a file.
_WATCH = """import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    file.write(f"{os.waitstatus_to_exitcode(status)} {1024 * usage.ru_maxrss}")
"""


def watched(report, *words):
    """The command that runs the program and reports on it in this file."""
    return [sys.executable, "-S", "-c", _WATCH, str(report), os.environ["MERCER_PROGRAM"], *map(str, words)]


def read_report(report):
    """(exit code, peak resident bytes)"""
    code, peak = Path(report).read_text().split()
    os.remove(report)
    return int(code), int(peak)


def read_csv(text):
    """Columns by name, as lists of floats."""
    rows = list(csv.reader(io.StringIO(text)))
    return {name: [float(row[j]) for row in rows[1:]] for j, name in enumerate(rows[0])}


def rows_of(text):
    """A list of dictionaries of text, in file order."""
    return list(csv.DictReader(io.StringIO(text)))


class CliCase(unittest.TestCase):
    """Each test runs in an empty folder of its own."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mercer-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def mercer(self, *words, code=0, **keywords):
        """Runs the program in the test's folder and checks its exit code, unless that is None."""
        done = run(*words, cwd=self.folder, **keywords)
        if code is not None:
            self.assertEqual(done.returncode, code, f"mercer {words}\n{done.stdout}\n{done.stderr}")
        return done

    def json(self, *words, code=0, **keywords):
        """The one object that --json prints."""
        done = self.mercer(*words, "--json", code=code, **keywords)
        for name in ("NaN", "Infinity"):  # json.loads would take them, JSON does not have them
            self.assertNotIn(name, done.stdout)
        return json.loads(done.stdout)

    def refused(self, code, *words, saying=(), **keywords):
        """The exit code, one line that names the verb and says the words, and no traces."""
        before = sorted(os.listdir(self.folder))
        done = self.mercer(*words, code=code, **keywords)
        last = done.stderr.strip().splitlines()[-1]
        if "--json" in words:
            error = json.loads(done.stdout)["error"]
            self.assertEqual(error["code"], code)
            self.assertTrue(last.endswith(": " + error["message"]), done.stdout)
        else:
            self.assertEqual(done.stdout, "")
        self.assertTrue(last.startswith(f"mercer {words[0]}: "), done.stderr)
        for word in (saying,) if isinstance(saying, str) else saying:
            self.assertIn(word, last)
        self.assertEqual(sorted(os.listdir(self.folder)), before, "a file was left behind")
        return last

    def generate(self, name, *words):
        """Simulated data in a file of this name."""
        self.mercer("generate", *words, "-o", name, "--quiet")
        return self.folder / name

    def wait_for(self, process, name):
        """Waits until there is a file of this name; fails if the process ended before."""
        deadline = time.monotonic() + TIMEOUT
        while not (self.folder / name).exists():
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def has(self, record, keys):
        missing = [key for key in keys.replace(",", " ").split() if key not in record]
        self.assertEqual(missing, [])


@functools.lru_cache(maxsize=None)
def fitted():
    """(folder, train.csv, test.csv, model.mcr), made once for all cases that only read them."""
    folder = Path(tempfile.mkdtemp(prefix="mercer-cli-shared-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for words in (("generate", "friedman", "-n", 300, "-d", 6, "--seed", 3, "-o", "all.csv"),
                  ("split", "all.csv", "--test-fraction", 0.3, "--train-out", "train.csv",
                   "--test-out", "test.csv"),
                  ("fit", "train.csv", "--target", "y", "-m", "model.mcr", "--restarts", 0)):
        done = run(*words, cwd=folder)
        if done.returncode != 0:
            raise RuntimeError(f"mercer {words}: {done.stderr}")
    return folder, folder / "train.csv", folder / "test.csv", folder / "model.mcr"
