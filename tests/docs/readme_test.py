"""The first example of the README, run and compared: readme_test.py PROGRAM README.

Lines of the example must be the same word for word. Numbers may differ as far as they do between machines: learned
hyperparameters are where the likelihood is flat to the stopping rule of the learning, so what is printed of them, and of
the scores that follow from them, is compared to 3 %. Seconds, memory, numbers of evaluations and rounding errors are not
compared at all; an error bound may not be above a millionth.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, README = (os.path.abspath(path) for path in sys.argv[1:3])
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[+-]\d+)?(?![\w])")
# Lines whose numbers belong to the machine and the moment.
FREE = ("Training", "Certificate", "Time", "Predicted", "             (units of y); relative residual")
SHARE = 0.03


def example():
    """[(command, lines that it printed)] of the first block of the README that runs mercer."""
    blocks = re.findall(r"^```\n(.*?)^```$", Path(README).read_text(), re.M | re.S)
    block = next(block for block in blocks if block.startswith("$ mercer"))
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return steps


def words(line):
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip()


class ReadmeTest(unittest.TestCase):
    def same(self, shown, printed):
        self.assertEqual([words(line) for line in shown], [words(line) for line in printed])
        for a, b in zip(shown, printed):
            pairs = list(zip(NUMBER.findall(a), NUMBER.findall(b)))
            for x, y in ((float(x.replace(",", "")), float(y.replace(",", ""))) for x, y in pairs):
                if not a.startswith(FREE):
                    self.assertLessEqual(abs(x - y), SHARE * max(abs(x), abs(y)), f"{a}\n{b}")
            bound = re.search(r" within (\S+) of", b)
            if bound:
                self.assertLess(float(bound.group(1)), 1e-6)

    def test_the_first_example_prints_what_it_shows(self):
        steps = example()
        self.assertGreaterEqual(len(steps), 5)
        with tempfile.TemporaryDirectory() as folder:
            for command, shown in steps:
                program, *rest = shlex.split(command)
                self.assertEqual(program, "mercer")
                done = subprocess.run([PROGRAM, *rest], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr}")
                with self.subTest(command):
                    self.same(shown, done.stdout.splitlines())
            columns = (Path(folder) / "predictions.csv").read_text().splitlines()[0]
        text = Path(README).read_text()
        self.assertIn(f"`{columns.replace(',', ', ')}`", text)

    def test_the_picture_comes_from_the_same_commands(self):
        script = (Path(README).parent / "docs" / "pictures" / "readme.py").read_text()
        for command, _ in example():
            if not command.startswith("mercer evaluate"):
                self.assertIn(f'"{command[len("mercer "):]}"', script)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
