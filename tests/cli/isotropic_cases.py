"""--isotropic, `:iso` on unequal scales, and what is given for a kernel is kept."""

import csv
import gzip
import math
import os
import random
import unittest
from pathlib import Path

from harness import CliCase, read_csv

ANGLE = math.radians(30)


def turned(x, y):
    """The same place in coordinates that are turned by 30 degrees."""
    return (math.cos(ANGLE) * x - math.sin(ANGLE) * y, math.sin(ANGLE) * x + math.cos(ANGLE) * y)


def field(n, seed=1, turn=False):
    """Places of a map in metres, wider than high, with a depth in another unit."""
    rng = random.Random(seed)
    lines = ["x,y,depth,z"]
    for _ in range(n):
        x, y, depth = rng.uniform(0, 4000), rng.uniform(0, 1500), rng.uniform(0, 3)
        z = math.sin(x / 500) + math.cos(y / 400) + 0.3 * depth + 0.1 * rng.gauss(0, 1)
        place = turned(x, y) if turn else (x, y)
        lines.append(f"{place[0]!r},{place[1]!r},{depth!r},{z!r}")
    return "\n".join(lines) + "\n"


class IsotropicTest(CliCase):
    def fit(self, turn, *words):
        """Record and predictions of a model of the map, at the same places in its coordinates."""
        self.write("map.csv", field(120, turn=turn))
        self.write("new.csv", field(30, seed=2, turn=turn))
        record = self.json("fit", "map.csv", "-m", "m.mcr", *words)
        self.mercer("predict", "m.mcr", "new.csv", "-o", "p.csv", "--quiet")
        return record, read_csv((self.folder / "p.csv").read_text())

    def test_a_coordinate_with_missing_cells(self):
        # `--impute level` gives y an input of its own for missing cells, which shares nothing: the
        # model was written so that no verb could read it again.
        lines = field(60).splitlines()
        cells = lines[7].split(",")
        lines[7] = ",".join([cells[0], "NA", *cells[2:]])
        self.write("map.csv", "\n".join(lines) + "\n")
        self.mercer("fit", "map.csv", "--isotropic", "x,y", "--impute", "level", "--train", "none", "-m", "m.mcr")
        text = self.mercer("info", "m.mcr").stdout
        self.assertIn("x, y ", text)
        self.assertIn("y=missing ", text)
        self.assertEqual(len(self.mercer("predict", "m.mcr", "map.csv", "--quiet").stdout.splitlines()), 61)

    def test_predictions_do_not_depend_on_the_direction_of_the_axes(self):
        """Without learning only rounding differs; with it the search ends within its tolerance."""
        for words in (("--inputs", "x,y"), (), ("--kernel", "rbf + matern32(x,y)"),
                      ("--mean", "linear"), ("--no-standardize",), ("--kernel", "matern12:iso(x,y)")):
            with self.subTest(words):
                _, straight = self.fit(False, *words, "--isotropic", "x,y", "--train", "none")
                _, across = self.fit(True, *words, "--isotropic", "x,y", "--train", "none")
                for name in ("mean", "sd_latent", "sd_obs"):
                    for a, b in zip(straight[name], across[name]):
                        self.assertAlmostEqual(a, b, delta=1e-8, msg=name)

    def test_without_it_they_do(self):
        _, straight = self.fit(False, "--inputs", "x,y", "--kernel", "rbf:iso", "--train", "none")
        _, across = self.fit(True, "--inputs", "x,y", "--kernel", "rbf:iso", "--train", "none")
        self.assertGreater(max(abs(a - b) for a, b in zip(straight["mean"], across["mean"])), 1e-3)

    def test_the_learned_lengthscale_is_one_number_in_metres(self):
        straight, _ = self.fit(False, "--isotropic", "x,y", "--kernel", "rbf")
        across, _ = self.fit(True, "--isotropic", "x,y", "--kernel", "rbf")
        self.assertEqual(straight["kernel"], "rbf:iso(x,y)")
        lengths = straight["hyperparameters"]["lengthscales"]
        self.assertEqual(lengths[0], lengths[1])
        self.assertNotEqual(lengths[0], lengths[2])
        self.assertEqual(straight["hyperparameters"]["leaves"][0]["shared"], [0, 0, 1])
        # The evidence is flat at its maximum: a search ends within 1e-4 of it in the logarithm.
        self.assertAlmostEqual(math.log(lengths[0] / across["hyperparameters"]["lengthscales"][0]),
                               0, delta=1e-2)
        text = self.mercer("info", "m.mcr").stdout
        self.assertTrue(any(line.split()[:2] == ["x,", "y"] for line in text.splitlines()), text)

    def test_a_note_where_iso_meets_unequal_scales(self):
        self.write("map.csv", field(60))
        words = ("fit", "map.csv", "--inputs", "x,y", "--train", "none", "-m", "m.mcr")
        for kernel in ("rbf:iso", "rbf:iso(x,y)"):
            note = self.mercer(*words, "--kernel", kernel).stderr
            self.assertIn("standardised one by one is", note)
            self.assertIn("--isotropic x,y", note)
        for folds in ("3", "loo"):
            self.assertIn("--isotropic x,y", self.mercer(
                "cv", "map.csv", "--inputs", "x,y", "--train", "none", "--kernel", "rbf:iso",
                "--folds", folds).stderr)
        for quiet in (("--kernel", "rbf"), ("--kernel", "rbf:iso", "--isotropic", "x,y"),
                      ("--kernel", "rbf:iso", "--no-standardize")):
            self.assertNotIn("one by one", self.mercer(*words, *quiet).stderr)

    def test_refusals(self):
        self.write("map.csv", "x,y,c,z\n" + "".join(
            f"{i * 7 % 11},{i * 5 % 13},{'ab'[i % 2]},{i % 4 + i / 7}\n" for i in range(20)))
        data = ("fit", "map.csv", "--categorical", "c", "--task", "regression")
        for words, saying in (
                (("--isotropic", "x"), "two inputs or more"),
                (("--isotropic", "x,x"), "twice"),
                (("--isotropic", "x,nothing"), "nothing"),
                (("--isotropic", "x,c"), "categories"),
                (("--isotropic", "x,z"), "no input"),
                (("--isotropic", "x,y", "--kernel", "rbf(x) * rbf(y)"), "sees them together"),
                (("--isotropic", "x,y", "--kernel", "constant"), "sees them together"),
                (("--isotropic", "x,y", "--lengthscale", "1,2,3,4"), "share one lengthscale")):
            with self.subTest(words):
                self.refused(2, *data, *words, saying=saying)

    def test_other_verbs_take_it(self):
        self.write("map.csv", field(40))
        for verb in ("solve", "plan", "cv"):
            self.mercer(verb, "map.csv", "--isotropic", "x,y", *(("--train", "none") if verb == "cv"
                                                                else ()))

    def test_meuse(self):
        folder = Path(os.environ.get("MERCER_DATA", Path(__file__).resolve().parents[2].parent /
                                     "shared" / "data"))
        found = [p for p in sorted(folder.glob("**/meuse*.csv*")) if "grid" not in p.name]
        if not found:
            raise unittest.SkipTest("no meuse.csv in $MERCER_DATA or ../shared/data")
        opened = gzip.open(found[0], "rt") if found[0].suffix == ".gz" else open(found[0])
        with opened as source:
            rows = list(csv.DictReader(source))
        lines = ["x,y,log_zinc"] + [f"{r['x']},{r['y']},{math.log(float(r['zinc']))!r}" for r in rows]
        self.write("meuse.csv", "\n".join(lines) + "\n")
        record = self.json("fit", "meuse.csv", "--isotropic", "x,y", "--kernel", "matern32",
                           "--mean", "constant", "-m", "m.mcr")
        lengths = record["hyperparameters"]["lengthscales"]
        self.assertEqual(lengths[0], lengths[1])
        self.assertTrue(50 < lengths[0] < 5000, lengths)
        print(f"meuse: matern32, one lengthscale of {lengths[0]:.0f} m")


class GivenValuesTest(CliCase):
    def setUp(self):
        super().setUp()
        self.write("d.csv", field(40))

    def fit(self, *words):
        return self.json("fit", "d.csv", "-m", "m.mcr", "--inputs", "x,y", *words)["hyperparameters"]

    def test_an_explicit_one_is_kept(self):
        for words in (("--kernel", "1*rbf:iso:lengthscale=1", "--noise", 1),
                      ("--kernel", "rbf:iso", "--lengthscale", 1, "--signal-variance", 1, "--noise",
                       1),
                      ("--kernel", "1.0 * rbf:lengthscale=1.0", "--noise", "1")):
            for scale in ((), ("--no-standardize",)):
                with self.subTest(words=words, scale=scale):
                    values = self.fit("--train", "none", *words, *scale)["standardised"]
                    self.assertEqual(set(values["parameters"].values()), {1.0})

    def test_what_is_written_in_the_expression_is_kept_by_other_verbs(self):
        other = self.mercer("generate", "gp", "-n", 20, "--kernel", "3*rbf:iso:lengthscale=2").stdout
        same = self.mercer("generate", "gp", "-n", 20, "--kernel", "rbf:iso", "--lengthscale", 2,
                           "--signal-variance", 3).stdout
        self.assertEqual(other, same)

    def test_contradictions_are_refused(self):
        for verb, words, saying in (
                ("fit", ("--kernel", "rbf:lengthscale=3", "--lengthscale", 5), "--lengthscale"),
                ("fit", ("--kernel", "rbf:lengthscale=3", "--lengthscale", 3), "leave one"),
                ("fit", ("--kernel", "2*rbf", "--signal-variance", 3), "--signal-variance"),
                ("fit", ("--kernel", "rbf:ard:iso"), "second time"),
                ("fit", ("--kernel", "rbf:lengthscale=1:lengthscale=2"), "twice"),
                ("fit", ("--kernel", "constant", "--lengthscale", 1), "no lengthscale"),
                ("fit", ("--kernel", "linear:iso", "--lengthscale", 1), "no lengthscale"),
                ("solve", ("--kernel", "rbf:lengthscale=3", "--lengthscale", 5), "leave one"),
                ("plan", ("--kernel", "rbf:lengthscale=3", "--lengthscale", 5), "leave one"),
                ("cv", ("--kernel", "rbf:lengthscale=3", "--lengthscale", 5), "leave one"),
                ("compare", ("--kernel", "rbf:iso:lengthscale=3"), "grid"),
                ("fit", ("--train", "exact", "--probes", 3), "no meaning"),
                ("fit", ("--train", "none", "--steps", 3), "no meaning"),
                ("fit", ("--solver", "cholesky", "--preconditioner", "nystrom"), "preconditioner"),
                ("fit", ("--solver", "cholesky", "--rank", 3), "rank"),
                ("fit", ("--solver", "cholesky", "--operator", "tiled"), "operator"),
                ("fit", ("--solver", "cholesky", "--precision", "mixed"), "precision"),
                ("fit", ("--solver", "cholesky", "--max-iterations", 5, "--train", "none"),
                 "no iterations"),
                ("fit", ("--solver", "cholesky", "--max-iterations", 5, "--train", "exact"),
                 "no iterations"),
                ("solve", ("--solver", "cholesky", "--max-iterations", 5), "no iterations"),
                ("fit", ("--preconditioner", "none", "--rank", 3), "rank"),
                ("fit", ("--train", "none", "--restarts", 2), "no meaning"),
                ("fit", ("--train", "none", "--subset", 20), "no meaning"),
                ("fit", ("--train", "adam", "--restarts", 2), "no meaning"),
                ("fit", ("--standardize", "--no-standardize"), "both"),
                ("fit", ("--no-merge", "--merge"), "both"),
                ("fit", ("--lengthscale", "1,2"), "2 values"),
                ("generate", ("--kernel", "rbf:lengthscale=3", "--lengthscale", 5), "leave one"),
                ("generate", ("--kernel", "2*rbf", "--signal-variance", 5), "leave one")):
            with self.subTest(verb=verb, words=words):
                data = ("gp", "-n", 10, "-o", "g.csv") if verb == "generate" else ("d.csv",)
                self.refused(2, verb, *data, *words, saying=saying)

    def test_predictions_without_solves_take_no_options_of_solves(self):
        self.fit("--train", "none")
        for words in (("--tolerance", 1e-3), ("--solver", "cg")):
            self.refused(2, "predict", "m.mcr", "d.csv", "-o", "p.csv", "--variance", "none", *words,
                         saying=(words[0], "no meaning"))
            self.mercer("predict", "m.mcr", "d.csv", "-o", "p.csv", "--variance", "none",
                        "--samples", 2, *words)
            (self.folder / "p.csv").unlink()

    def test_extreme_values_are_named(self):
        for words in (("--lengthscale", "inf"), ("--lengthscale", "nan"), ("--noise", "inf"),
                      ("--signal-variance", "1e999"), ("--lengthscale", "0"), ("--noise", "-1")):
            with self.subTest(words):
                last = self.refused(2, "fit", "d.csv", *words, saying=words[0])
                self.assertNotIn("bounds:", last)
        # Values that are numbers, but whose matrix is not.
        for words, code, saying in (
                (("--signal-variance", 1e308, "--train", "none"), 2, "--signal-variance"),
                (("--kernel", "1e308*rbf + 1e308*linear"), 2, "--kernel"),
                (("--kernel", "rbf", "--lengthscale", 1e8, "--noise", 1e-300), 5, "more --noise")):
            with self.subTest(words):
                self.refused(code, "fit", "d.csv", *words, saying=saying)
        self.write("huge.csv", "x,y,z\n" + "".join(
            f"{(i % 5 - 2) * 1e200},{(i % 7) * 1e-200},{i % 3 + i / 9}\n" for i in range(30)))
        # Inputs of any size are learned from, and what cannot be is said without internals.
        done = self.mercer("fit", "huge.csv", "--no-standardize", "--task", "regression",
                           "-m", "h.mcr", code=None)
        self.assertNotIn("bounds:", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_advice_fits_a_factorisation(self):
        self.write("near.csv", "x,y\n" + "".join(f"{i / 1000},{math.sin(i / 100)}\n" for i in range(60)))
        words = ("near.csv", "--train", "none", "--kernel", "rbf:iso", "--lengthscale", 2, "--noise",
                 1e-9, "--solver", "cholesky", "--tolerance", 1e-15)
        for verb, more in (("fit", ("-m", "n.mcr")), ("solve", ())):
            given = words if verb == "fit" else tuple(w for w in words if w not in ("--train", "none"))
            done = self.mercer(verb, *given, *more, code=5)
            self.assertIn("not reached", done.stderr)
            self.assertNotIn("--max-iterations", done.stderr)
            for word in ("--noise", "--kernel", "--solver cg"):
                self.assertIn(word, done.stderr)
        done = self.mercer("fit", "near.csv", "--train", "none", "--noise", 1e-6, "--solver", "cg",
                           "--preconditioner", "none", "--max-iterations", 2, "-m", "n.mcr", code=5)
        self.assertIn("--max-iterations", done.stderr)
