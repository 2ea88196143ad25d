"""Model files that earlier versions of the program wrote predict the same numbers for ever.

tests/models/golden holds small models of every kind in the format versions 1 to 4, the rows they are asked about (new.csv)
and the predictions of the program that wrote them; golden.json lists them, make.py made them.
"""

import json
import struct
from pathlib import Path

from harness import CliCase, rows_of

GOLDEN = Path(__file__).resolve().parent.parent / "models" / "golden"

# Both programs multiply with the weights in the file, so means differ by rounding alone, by at most
# 2e-14 sum_j |w_j| sqrt(k_jj k**) (docs/certificate.md). With |w| <= sqrt(N / s2) the sum is below
# N v / sqrt(s2), which is below 5e4 of the largest mean in every model here, and the difference below
# this share of it. The error bounds of the rows, where smaller, allow less.
# Standard deviations by a factorisation differ by no more than 6 times the rounding that the bound of
# a solve to 1e-10 counts: for N = 36 each program commits (e + 3 g) / e = 2.2 < 3 of it. A test checks
# that this is below the same share.
ROUNDING = 1e-9


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_sd(name):
    return name == "sd_latent" or name.startswith("latent_sd")


class GoldenModelsTest(CliCase):
    def allowed(self, name, size, bounds, sd_slack):
        """How far two programs may be apart in a column: rounding, and what solves for variances leave
        open (`sd_slack`, the sum of both programs' bounds of an sd; 0 for a factorisation)."""
        if name in ("mean", "latent_mean") and bounds:
            return min(ROUNDING * size, bounds)
        # Solves enter all that is made from an sd: sd_obs = sqrt(sd^2 + s2) moves less than sd does, quantiles
        # 1.645 times as much as sd_obs, and a probability less than the sds of all three functions together.
        share = {"q05": 1.645, "q95": 1.645, "sd_obs": 1}.get(name, int(is_sd(name)))
        if name.startswith("probability"):
            share = 3
        return ROUNDING * size + share * sd_slack

    def compare(self, found, expected, sd_slack):
        self.assertEqual(len(found), len(expected))
        self.assertEqual(list(found[0]), list(expected[0]))
        for name in expected[0]:
            if not is_number(expected[0][name]):
                self.assertEqual([row[name] for row in found], [row[name] for row in expected])
                continue
            size = max(abs(float(row[name])) for row in expected)
            for line, (now, then) in enumerate(zip(found, expected), 2):
                # For counts the bound is one of the latent mean.
                bounded = name == ("latent_mean" if "latent_mean" in then else "mean") and "error_bound" in then
                bounds = float(now["error_bound"]) + float(then["error_bound"]) if bounded else None
                # Later programs may know sharper bounds; each counts the rounding of the mean, which is of order one.
                if name == "error_bound":
                    self.assertLessEqual(float(now[name]), float(then[name]) * (1 + ROUNDING) + 1e-14, f"line {line}")
                    continue
                self.assertAlmostEqual(float(now[name]), float(then[name]),
                                       delta=self.allowed(name, size, bounds, sd_slack),
                                       msg=f"column {name}, line {line}")

    def predict(self, model, words):
        """The rows and the record of a prediction."""
        record = self.json("predict", model, GOLDEN / "new.csv", "--quiet", "-o", "p.csv", *words)
        return rows_of((self.folder / "p.csv").read_text()), record

    def sees_ten_bounds(self, found, expected, sd_slack):
        """An error of ten times what is allowed, in any column of the first row, is a failure."""
        for column in expected[0]:
            size = max(abs(float(row[column])) for row in expected) if is_number(expected[0][column]) else 0
            if size == 0 or column == "error_bound":
                continue
            error = 10 * max(ROUNDING * size, 3 * sd_slack)
            wrong = [dict(found[0], **{column: repr(float(found[0][column]) + error)}), *found[1:]]
            with self.assertRaises(AssertionError, msg=column):
                self.compare(wrong, expected, sd_slack)

    def test_models_of_every_version_predict_the_same(self):
        versions = set()
        for name, runs in json.loads((GOLDEN / "golden.json").read_text()).items():
            model = GOLDEN / f"{name}.mcr"
            versions.add(struct.unpack("<I", model.read_bytes()[8:12])[0])
            for each in runs:
                with self.subTest(model=name, words=each["words"]):
                    found, record = self.predict(model, each["words"])
                    expected = rows_of((GOLDEN / each["predictions"]).read_text())
                    # golden.json has the bound of the stored predictions where sds came from iterative solves.
                    solved = "sd_error_bound" in each
                    sd_slack = each["sd_error_bound"] + record["sd_error_bound"] if solved else 0
                    self.compare(found, expected, sd_slack)
                    self.sees_ten_bounds(found, expected, sd_slack)
        self.assertEqual(versions, {1, 2, 3, 4})

    def test_rounding_of_an_sd_is_below_what_is_allowed(self):
        for name in json.loads((GOLDEN / "golden.json").read_text()):
            expected = rows_of((GOLDEN / f"{name}.csv").read_text())
            sds = [column for column in expected[0] if is_sd(column)]
            if not sds:
                continue
            with self.subTest(model=name):
                found, record = self.predict(GOLDEN / f"{name}.mcr", ("--solver", "cg", "--tolerance", "1e-10"))
                size = min(max(float(row[column]) for row in found) for column in sds)
                self.assertLess(6 * record["sd_error_bound"], ROUNDING * size)

    def test_models_of_every_version_are_shown(self):
        for path in sorted(GOLDEN.glob("*.mcr")):
            with self.subTest(model=path.name):
                self.assertIn("Learned on", self.mercer("info", path).stdout)
                record = self.json("info", path)
                self.assertEqual(record["n"], 45 if path.stem == "merged-rows" else 36)
