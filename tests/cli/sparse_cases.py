"""Approximations from outside: --method NAME, base points, learning, files, plans, comparisons."""

import json
import math
import xml.etree.ElementTree

from harness import CliCase, read_csv, rows_of

METHODS = "subset srm dtc rra bcm rbcm fitc pitc pic vfe".split()
BASE = [name for name in METHODS if name != "rbcm"]
BLOCKS = ["bcm", "rbcm", "pitc", "pic"]
FIXED = ("--train", "none", "--lengthscale", "0.7", "--noise", "0.02", "--signal-variance", "1")


class SparseTest(CliCase):
    def data(self, n=90):
        self.generate("d.csv", "gp", "-n", n, "--seed", 4)
        self.generate("t.csv", "gp", "-n", 20, "--seed", 5)

    def test_every_method_fits_predicts_and_says_what_it_is(self):
        self.data()
        exact = self.json("fit", "d.csv", *FIXED, "-m", "exact.mcr")
        self.assertEqual(exact["log_marginal_likelihood"]["kind"], "exact")
        self.assertIsNone(exact["certificate"]["approximation"])
        self.assertFalse(exact["plan"]["approximate"])
        for name in METHODS:
            with self.subTest(method=name):
                words = ["--method", name, *(["--rank", 15] if name in BASE else []),
                         *(["--blocks", 3] if name in BLOCKS else [])]
                record = self.json("fit", "d.csv", *FIXED, *words, "--check-rows", 12, "-m", "m.mcr")
                self.assertEqual(record["method"], name)
                self.assertEqual(record["plan"]["inference"], name)
                self.assertIsNone(record["solver"])
                evidence = record["log_marginal_likelihood"]
                self.assertEqual(evidence["kind"], "bound" if name == "vfe" else "approximate")
                self.assertEqual(evidence["method"], name)
                certificate = record["certificate"]
                self.assertIsNone(certificate["mean_error_bound"])
                self.assertIn(name, certificate["mean_error_bound_reason"])
                measured = certificate["approximation"]
                self.assertEqual(measured["method"], name)
                self.assertEqual(measured["evidence_kind"], evidence["kind"])
                self.assertEqual(measured["checked_rows"], 12)
                self.assertLessEqual(measured["mean_rms"], measured["mean_max"])
                self.assertGreaterEqual(measured["kl"], 0)
                self.has(measured, "sd_rms, sd_max")
                done = self.mercer("predict", "m.mcr", "t.csv", "-o", "-")
                columns = read_csv(done.stdout)
                self.assertNotIn("error_bound", columns)
                self.assertTrue(all(value > 0 for value in columns["sd_latent"]))
                scores = self.json("evaluate", "m.mcr", "t.csv")
                self.assertEqual(scores["variance"], name)
                self.assertIsNone(scores["sd_error_bound"])
                info = self.json("info", "m.mcr")
                self.assertEqual(info["n"], 90)
                self.assertEqual(info["certificate"]["approximation"]["kl"], measured["kl"])
                text = self.mercer("info", "m.mcr").stdout
                self.assertIn(f"approximated by {name}", text)
                self.assertIn("12 random rows", text)

    def test_the_bound_is_below_the_exact_evidence_and_is_called_that(self):
        self.data()
        exact = self.json("fit", "d.csv", *FIXED, "-m", "e.mcr")["log_marginal_likelihood"]["value"]
        values = [self.json("fit", "d.csv", *FIXED, "--method", "vfe", "--rank", rank, "-m", "m.mcr")
                  ["log_marginal_likelihood"]["value"] for rank in (5, 20, 90)]
        self.assertLess(values[0], values[1])
        self.assertLessEqual(max(values), exact + 1e-6)
        text = self.mercer("fit", "d.csv", *FIXED, "--method", "vfe", "--rank", 5, "-m", "m.mcr").stdout
        self.assertIn("a lower bound by vfe", text)
        self.assertIn("not measured; --check-rows", " ".join(text.split()))

    def test_learning_climbs_its_own_evidence(self):
        self.data(140)
        start = self.json("fit", "d.csv", *FIXED, "--method", "vfe", "--rank", 10, "-m", "m.mcr")
        words = ("fit", "d.csv", "--method", "vfe", "--rank", 10, "--restarts", 0, "-m", "m.mcr")
        learned = self.json(*words)
        self.assertGreater(learned["log_marginal_likelihood"]["value"],
                           start["log_marginal_likelihood"]["value"])
        self.assertGreater(learned["approximate_evaluations"], 1)
        self.assertEqual(learned["level_evaluations"], 0)  # so few rows have no levels
        self.assertEqual(learned["plan"]["solve_levels"], [])
        moved = self.json(*words, "--optimize-base")
        self.assertGreaterEqual(moved["log_marginal_likelihood"]["value"],
                                learned["log_marginal_likelihood"]["value"])
        self.assertGreater(moved["base_evaluations"], 0)
        self.assertIn("base points moving", self.mercer(*words, "--optimize-base").stdout)
        adam = self.json(*words[:-4], "-m", "m.mcr", "--train", "adam", "--steps", 5)
        self.assertEqual(adam["approximate_evaluations"], 5)

    def test_a_checkpoint_goes_on_to_the_same_bits(self):
        self.data(120)
        words = ("fit", "d.csv", "--method", "fitc", "--rank", 12, "--restarts", 0)
        whole = self.json(*words, "-m", "a.mcr")
        self.json(*words, "-m", "b.mcr", "--checkpoint", "c.chk")
        again = self.json(*words, "-m", "c.mcr", "--checkpoint", "c.chk")
        self.assertGreater(again["resumed_evaluations"], 0)
        for key in ("hyperparameters", "log_marginal_likelihood"):
            self.assertEqual(again[key], whole[key])
        for model in ("b.mcr", "c.mcr"):
            self.assertEqual(self.mercer("predict", model, "t.csv", "-o", "-").stdout,
                             self.mercer("predict", "a.mcr", "t.csv", "-o", "-").stdout)
        self.refused(2, *words[:-1], 1, "-m", "d.mcr", "--checkpoint", "c.chk", saying="other options")

    def test_bcm_says_what_it_adds_where_points_are_asked_for_twice(self):
        self.data()
        header, *rows = (self.folder / "t.csv").read_text().splitlines()
        self.write("twice.csv", "\n".join([header, rows[0], rows[0], rows[1]]) + "\n")
        self.json("fit", "d.csv", *FIXED, "--method", "bcm", "-m", "m.mcr")
        self.assertEqual(self.json("predict", "m.mcr", "t.csv")["jitter"], 0)
        twice = self.mercer("predict", "m.mcr", "twice.csv", "--json")
        self.assertGreater(json.loads(twice.stdout)["jitter"], 0)
        self.assertIn("added to its diagonal", twice.stderr)

    def test_base_points_of_a_file(self):
        self.data()
        header, *rows = (self.folder / "t.csv").read_text().splitlines()
        record = self.json("fit", "d.csv", *FIXED, "--method", "bcm", "--base", "t.csv", "-m", "m.mcr")
        self.assertEqual(record["certificate"]["approximation"]["base_points"], 20)
        names = header.split(",")
        self.write("one.csv", "\n".join([header, rows[0]]) + "\n")
        self.write("twice.csv", "\n".join([header, rows[0], rows[0], rows[1]]) + "\n")
        self.write("other.csv", "a,b\n1,2\n3,4\n")
        words = ("fit", "d.csv", *FIXED, "--method", "vfe", "-m", "x.mcr", "--base")
        self.refused(3, *words, "one.csv", saying="one row")
        self.refused(2, *words, "twice.csv", saying="same point")
        self.refused(3, *words, "other.csv", saying=names[0])
        self.refused(2, *words, "nowhere.csv", saying=("nowhere.csv", "rpcholesky"))
        self.refused(2, *words, "t.csv", "--rank", 5, saying="--rank")

    def test_refusals(self):
        self.data(40)
        for words, saying in ((("--method", "vfe", "--rank", 41), "more than the 40 distinct rows"),
                              (("--method", "pitc", "--blocks", 41), "--blocks is 41"),
                              (("--method", "vfe", "--blocks", 3), "has no blocks"),
                              (("--method", "rbcm", "--rank", 3), "has no base points"),
                              (("--method", "vfe", "--solver", "cg"), "solves no system"),
                              (("--method", "vfe", "--preconditioner", "nystrom"), "solves no system"),
                              (("--method", "vfe", "--accuracy", "0.1"), "solves no system"),
                              (("--method", "vfe", "--tolerance", "1e-3"), "solves no system"),
                              (("--method", "vfe", "--probes", 4), "exact gradient"),
                              (("--method", "vfe", "--train", "vecchia"), "--train vecchia"),
                              (("--method", "pitc", "--optimize-base"), "fitc, vfe"),
                              (("--method", "vfe", "--train", "none", "--optimize-base"), "--train none"),
                              (("--base", "random"), "--method"),
                              (("--check-rows", 3), "--method"),
                              (("--method", "vfe", "--check-rows", 0), "--check-rows"),
                              (("--method", "vfe", "--blocks-by", "magic"), "tree"),
                              (("--method", "magic"), "rbcm"),
                              (("--method", "vfe", "--likelihood", "student-t"), "Gaussian noise")):
            with self.subTest(words=words):
                self.refused(2, "fit", "d.csv", "-m", "x.mcr", *words, saying=saying)
        self.mercer("fit", "d.csv", *FIXED, "--method", "vfe", "--rank", 5, "-m", "m.mcr")
        for words, saying in ((("--variance", "exact"), "approximation"), (("--solver", "cg"), "--solver")):
            self.refused(2, "predict", "m.mcr", "t.csv", *words, "-o", "x.csv", saying=saying)
        self.refused(2, "cv", "d.csv", "--method", "vfe", "--folds", "loo", saying="--folds loo")

    def test_plan_and_memory(self):
        self.data()
        plan = self.json("plan", "d.csv")
        listed = {row["method"].split(",")[0]: row for row in plan["methods"] if row["stage"] == "instead"}
        self.assertEqual(sorted(listed), sorted(METHODS))
        for row in listed.values():
            self.assertFalse(row["chosen"])
            self.assertTrue(row["note"].startswith("approximate"))
        own = self.json("plan", "d.csv", "--method", "fitc", "--rank", 20)
        self.assertTrue(own["approximate"])
        self.assertEqual(own["inference"], "fitc")
        self.assertIn("20 base points", self.mercer("plan", "d.csv", "--method", "fitc", "--rank", 20).stdout)
        self.generate("large.csv", "friedman", "-n", 4000, "-d", 5, "--seed", 3)
        self.refused(4, "fit", "large.csv", "--target", "y", "--method", "vfe", "--rank", 3000, "--memory", "100M",
                     "-m", "x.mcr", saying="would do")

    def test_cross_validation(self):
        self.data()
        record = self.json("cv", "d.csv", *FIXED, "--method", "fitc", "--rank", 15, "--folds", 3)
        self.assertEqual(record["n"], 90)
        self.assertLess(record["scores"]["rmse"] if "scores" in record else record["rmse"], 1)

    def test_compare_with_the_exact_posterior(self):
        self.data(100)
        words = ("compare", "d.csv", *FIXED, "--methods", "exact,vfe,bcm,rbcm", "--ranks", "5,25", "--test", "t.csv",
                 "--check-rows", 8)
        record = self.json(*words)
        self.assertEqual([(run["method"], run["rank"]) for run in record["runs"]],
                         [("exact", None), ("vfe", 5), ("vfe", 25), ("bcm", 5), ("bcm", 25), ("rbcm", None)])
        exact, few, many = record["runs"][:3]
        self.assertIsNone(exact["distance"])
        self.assertLess(many["distance"]["mean_rms"], few["distance"]["mean_rms"])
        self.assertEqual(many["distance"]["checked_rows"], 8)
        self.assertEqual(few["evidence_kind"], "bound")
        for run in record["runs"]:
            self.has(run, "fit_seconds, predict_seconds, planned_bytes, peak_rss_bytes, scores")
            self.has(run["scores"], "rmse, nll, coverage90")
        text = self.mercer(*words, "--csv", "runs.csv", "--picture", "error.svg").stdout
        for word in ("rbcm", "mean apart", "KL", "memory"):
            self.assertIn(word, text)
        rows = rows_of((self.folder / "runs.csv").read_text())
        self.assertEqual(len(rows), 6)
        self.assertEqual(float(rows[1]["mean_rms"]), float(f"{few['distance']['mean_rms']:.10g}"))
        root = xml.etree.ElementTree.fromstring((self.folder / "error.svg").read_text())
        self.assertIn("bcm", "".join(node.text or "" for node in root.iter()))
        once = self.json("compare", "d.csv", "--methods", "exact,dtc", "--ranks", "10", "--learn", "once",
                         "--test-fraction", "0.25", "--restarts", 0)
        self.assertEqual(once["test_rows"], 25)
        self.assertIsNotNone(once["runs"][1]["distance"])

    def test_compare_with_an_exact_model_of_a_file(self):
        self.data(100)
        self.json("fit", "d.csv", *FIXED, "-m", "exact.mcr")
        words = ("compare", "d.csv", *FIXED, "--methods", "exact,vfe", "--ranks", "5", "--test", "t.csv", "--check-rows", 8)
        own, given = self.json(*words), self.json(*words, "--exact", "exact.mcr")
        self.assertIsNone(given["runs"][0]["fit_seconds"])
        self.assertEqual(given["runs"][1]["distance"], own["runs"][1]["distance"])
        self.assertIn("exact", self.mercer(*words, "--exact", "exact.mcr", "--csv", "runs.csv").stdout)
        self.assertEqual(rows_of((self.folder / "runs.csv").read_text())[0]["fit_seconds"], "")
        self.refused(2, "compare", "d.csv", "--methods", "exact,vfe", "--exact", "exact.mcr", saying="--test")
        self.refused(2, "compare", "t.csv", "--methods", "exact,vfe", "--test", "d.csv", "--exact", "exact.mcr",
                     saying="not learned from the rows")
        self.refused(2, *words, "--exact", "exact.mcr", "--kernel", "rbf", saying="another kernel")
        self.json("fit", "d.csv", *FIXED, "--kernel", "matern32", "--mean", "linear", "-m", "other.mcr")
        self.refused(2, *words, "--exact", "other.mcr", saying="kernel matern32, mean linear")
        other = self.json(*words, "--exact", "other.mcr", "--kernel", "matern32", "--mean", "linear")
        self.assertIsNotNone(other["runs"][1]["distance"])
        self.refused(2, "compare", "d.csv", "--methods", "vfe", "--test", "t.csv", "--exact", "exact.mcr", saying="name exact")
        self.json("fit", "d.csv", *FIXED, "--method", "vfe", "-m", "vfe.mcr")
        self.refused(2, *words, "--exact", "vfe.mcr", saying="no exact posterior")

    def test_comparisons_that_are_refused(self):
        self.data(40)
        for words, saying in ((("--methods", "magic"), "exact"),
                              (("--methods", "vfe", "--learn", "once"), "exact"),
                              (("--methods", "vfe", "--ranks", "0"), "--ranks"),
                              (("--methods", "vfe", "--test", "t.csv", "--test-fraction", "0.5"), "give one"),
                              (("--methods", "vfe", "--json", "--csv", "-"), "standard output")):
            with self.subTest(words=words):
                self.refused(2, "compare", "d.csv", *words, saying=saying)
        skipped = self.json("compare", "d.csv", *FIXED, "--methods", "vfe", "--ranks", "5,400")
        self.assertIn("more than the", skipped["runs"][1]["skipped"])

    def test_what_is_learned_outlives_a_check_that_does_not_fit(self):
        self.generate("f.csv", "friedman", "-n", 3000)
        done = self.mercer("fit", "f.csv", *FIXED, "--method", "vfe", "--rank", 20, "--check-rows", 5, "--memory", "46M", "-m", "m.mcr")
        self.assertIn("was not measured", done.stderr)
        self.assertEqual(self.json("info", "m.mcr")["certificate"]["approximation"]["checked_rows"], 0)

    def test_compare_takes_a_file_of_base_points(self):
        self.data()
        self.generate("b.csv", "gp", "-n", 12, "--seed", 9)
        record = self.json("compare", "d.csv", "--methods", "exact,vfe", "--base", "b.csv", "--test", "t.csv", *FIXED)
        run = next(each for each in record["runs"] if each["method"] == "vfe")
        self.assertEqual(run["base_points"], 12)

    def test_the_divergence_counts_the_noise_of_both_models(self):
        self.data(140)
        words = ("--restarts", 0, "--test", "t.csv", "--check-rows", 20)
        record = self.json("compare", "d.csv", "--methods", "exact,subset", "--ranks", 10, *words)
        self.mercer("fit", "d.csv", "--restarts", 0, "-m", "e.mcr")
        self.mercer("fit", "d.csv", "--restarts", 0, "--method", "subset", "--rank", 10, "-m", "s.mcr")
        exact, found = (read_csv(self.mercer("predict", model, "t.csv", "-o", "-").stdout) for model in ("e.mcr", "s.mcr"))
        kl = 0
        for m0, s0, m1, s1 in zip(exact["mean"], exact["sd_obs"], found["mean"], found["sd_obs"]):
            kl += (s0 * s0 / (s1 * s1) - 1 - 2 * math.log(s0 / s1) + (m0 - m1) ** 2 / (s1 * s1)) / 2 / len(exact["mean"])
        run = next(each for each in record["runs"] if each["method"] == "subset")
        self.assertAlmostEqual(run["distance"]["kl"], kl, delta=1e-4 * kl)

    def test_options_without_effect_are_refused(self):
        self.data()
        self.mercer("fit", "d.csv", "--method", "vfe", "--rank", 10, "--train", "adam", "--optimize-base", "-m", "m.mcr", code=2)
        self.mercer("fit", "d.csv", *FIXED, "--method", "vfe", "--rank", 10, "-m", "m.mcr")
        for words in (("--check-rows", 3), ("--neighbours", 5)):
            done = self.mercer("predict", "m.mcr", "t.csv", *words, "-o", "o.csv", code=2)
            self.assertIn("approximation", done.stderr)

    def test_help_names_them(self):
        text = self.mercer("fit", "--help").stdout
        for name in METHODS:
            self.assertIn(name, text)
        self.assertIn("--ranks", self.mercer("compare", "--methods", "vfe", "--help").stdout)
