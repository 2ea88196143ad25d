"""Model files that earlier versions of the program wrote predict the same numbers for ever.

tests/models/golden holds small models of every kind in the format versions 1 to 3, the rows they are asked about (new.csv)
and the predictions of the program that wrote them; golden.json lists them, make.py made them.
"""

import json
import struct
from pathlib import Path

from harness import CliCase, rows_of

GOLDEN = Path(__file__).resolve().parent.parent / "models" / "golden"

# Means and bounds are one product with what is in the file. Variances come from a factorisation, whose rounding differs
# between machines; by conjugate gradients to 1e-10 they differ by more.
PRODUCT, FACTOR, ITERATIVE = 1e-12, 1e-9, 1e-7


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


class GoldenModelsTest(CliCase):
    def compare(self, found, expected, tolerance):
        self.assertEqual(len(found), len(expected))
        self.assertEqual(list(found[0]), list(expected[0]))
        for name in expected[0]:
            if not is_number(expected[0][name]):
                self.assertEqual([row[name] for row in found], [row[name] for row in expected])
                continue
            size = max(abs(float(row[name])) for row in expected)
            # A bound counts the rounding of the mean itself, which is of order one; each program in its own way.
            rounding = 1e-14 if name == "error_bound" else 0
            for line, (now, then) in enumerate(zip(found, expected), 2):
                self.assertAlmostEqual(float(now[name]), float(then[name]), delta=tolerance * size + rounding,
                                       msg=f"column {name}, line {line}")

    def test_models_of_every_version_predict_the_same(self):
        versions = set()
        for name, runs in json.loads((GOLDEN / "golden.json").read_text()).items():
            model = GOLDEN / f"{name}.mcr"
            versions.add(struct.unpack("<I", model.read_bytes()[8:12])[0])
            for each in runs:
                words = each["words"]
                with self.subTest(model=name, words=words):
                    found = self.mercer("predict", model, GOLDEN / "new.csv", "--quiet", *words).stdout
                    tolerance = (PRODUCT if "none" in words else ITERATIVE if "cg" in words else FACTOR)
                    self.compare(rows_of(found), rows_of((GOLDEN / each["predictions"]).read_text()), tolerance)
        self.assertEqual(versions, {1, 2, 3})

    def test_models_of_every_version_are_shown(self):
        for path in sorted(GOLDEN.glob("*.mcr")):
            with self.subTest(model=path.name):
                self.assertIn("Learned on", self.mercer("info", path).stdout)
                record = self.json("info", path)
                self.assertEqual(record["n"], 45 if path.stem == "merged-rows" else 36)
