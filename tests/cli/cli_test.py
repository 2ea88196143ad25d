"""Runs the tests of the command line: cli_test.py PROGRAM [unittest arguments].

One module per theme, named *_cases.py: journey (a class per verb), learning (by solves), noise (of each row), classification and likelihood (classes, counts, outliers), golden (files of earlier versions), messages (errors as JSON, records of solve and compare), options (the list of options, --config, docs/options.md), refusals (bad
input and its exit codes) and endurance (threads, interruption, resumption). What is skipped is printed with its reason.
"""

import os
import signal
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit("usage: cli_test.py PROGRAM [-v] [-k PATTERN]")
    os.environ["MERCER_PROGRAM"] = os.path.abspath(sys.argv[1])
    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    # Run in the background these may be ignored, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    names = sorted(path.stem for path in HERE.glob("*_cases.py"))
    for name in names:
        globals().update({k: v for k, v in vars(__import__(name)).items() if k.endswith("Test")})
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False)
    for test, reason in program.result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    sys.exit(not program.result.wasSuccessful())


if __name__ == "__main__":
    main()
