"""What the scripts of the studies share, as study.sh is for `run`: runs of mercer, tables and records as CSV."""

import csv
import gzip
import json
import os
import signal
import subprocess


def hear_interrupts():
    """For subprocess: a study in the background may have been told to ignore SIGINT, which mercer must not inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def call(*command, fine=(0, 5)):
    """The JSON that mercer prints; an answer that did not converge (exit code 5) is one too."""
    words = [*map(str, command), "--json", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=hear_interrupts)
    if done.returncode not in fine:
        raise SystemExit(" ".join(words) + "\n" + done.stderr)
    return json.loads(done.stdout)


def read_table(folder, name):
    """Header and rows of a data set, as text."""
    with gzip.open(os.path.join(folder, name + ".csv.gz"), "rt") as file:
        header, *rows = csv.reader(file)
    return header, rows


def write_table(path, header, rows):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(header)
        out.writerows(rows)


def read_records(path):
    """A dictionary of text per row; none where there is no file yet."""
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_records(path, fields, records):
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, fields)
        out.writeheader()
        out.writerows(records)
