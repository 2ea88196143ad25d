"""What every verb is for, one class each; numbers are checked against plain Python."""

import gzip
import json
import math
import os
import statistics

from harness import CliCase, fitted, read_csv, run

PREDICTION = ["mean", "sd_latent", "sd_obs", "q05", "q95", "error_bound", "error_estimate"]


def rbf_matrix(a, b, lengthscale, variance):
    return [[variance * math.exp(-sum((p - q) ** 2 for p, q in zip(x, z)) / (2 * lengthscale ** 2))
             for z in b] for x in a]


def solve_dense(matrix, rhs):
    """Gauss-Jordan elimination with row exchanges; rhs is a list of columns."""
    n = len(matrix)
    rows = [list(matrix[i]) + [column[i] for column in rhs] for i in range(n)]
    for k in range(n):
        p = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[p] = rows[p], rows[k]
        for i in range(n):
            if i != k and rows[i][k] != 0.0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [u - factor * v for u, v in zip(rows[i], rows[k])]
    return [[rows[i][n + c] / rows[i][i] for i in range(n)] for c in range(len(rhs))]


class HelpTest(CliCase):
    def test_overview_lists_the_verbs(self):
        text = self.mercer("--help").stdout
        for verb in "fit predict evaluate solve plan info generate split demo".split():
            self.assertIn(f"mercer {verb} ", text)

    def test_every_verb_shows_an_example_first(self):
        for verb in "fit predict evaluate solve plan info generate split demo".split():
            lines = self.mercer(verb, "--help").stdout.splitlines()
            self.assertEqual(lines[0], "Example:")
            self.assertIn(f"mercer {verb}", lines[1])

    def test_choices_come_from_the_registries(self):
        text = self.mercer("fit", "--help").stdout
        for name in ("matern52", "rbf", "cholesky", "cg", "[default: 1e-06]"):
            self.assertIn(name, text)

    def test_version(self):
        self.assertRegex(self.mercer("--version").stdout, r"^mercer \d+\.\d+\.\d+\n$")

    def test_a_mistyped_verb_or_option_gets_a_suggestion(self):
        self.assertIn("'predict'", self.mercer("predcit", code=2).stderr)
        self.assertIn("'--lengthscale'", self.mercer("fit", "a.csv", "--lenghtscale", "1",
                                                     code=2).stderr)

    def test_no_verb_is_a_usage_error(self):
        self.assertIn("Usage", self.mercer(code=2).stderr)


class GenerateTest(CliCase):
    def test_same_seed_same_bytes_on_any_number_of_threads(self):
        one = self.mercer("generate", "gp", "-n", 200, "--seed", 5, "--threads", 1).stdout
        two = self.mercer("generate", "gp", "-n", 200, "--seed", 5, "--threads", 2).stdout
        other = self.mercer("generate", "gp", "-n", 200, "--seed", 6).stdout
        self.assertEqual(one, two)
        self.assertNotEqual(one, other)

    def test_the_target_is_last_and_the_truth_before_it(self):
        for name in ("gp", "friedman", "field", "grid"):
            text = self.mercer("generate", name, "-n", 100, "--truth").stdout
            header = text.splitlines()[0].split(",")
            self.assertEqual(header[-2:], ["f", "y"])
            self.assertGreater(len(text.splitlines()), 40)

    def test_what_is_generated_can_be_read(self):
        for name, d in (("gp", 2), ("friedman", 10), ("field", 2), ("grid", 2)):
            self.generate("d.csv", name, "-n", 100)
            self.assertEqual(self.json("plan", "d.csv")["d"], d)

    def test_noise_has_the_variance_that_was_asked_for(self):
        text = self.mercer("generate", "friedman", "-n", 4000, "--noise", 4, "--truth").stdout
        table = read_csv(text)
        noise = [y - f for y, f in zip(table["y"], table["f"])]
        # The variance of 4000 draws has a relative standard deviation of 2.2 %: 5 of them.
        self.assertAlmostEqual(statistics.pvariance(noise) / 4, 1, delta=0.11)

    def test_friedman_is_friedmans_function(self):
        t = read_csv(self.mercer("generate", "friedman", "-n", 20, "-d", 7, "--truth").stdout)
        for i in range(20):
            x = [t[f"x{c}"][i] for c in range(1, 8)]
            f = (10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3]
                 + 5 * x[4])
            self.assertAlmostEqual(t["f"][i], f, places=10)

    def test_the_truth_is_told_on_standard_error(self):
        done = self.mercer("generate", "gp", "-n", 10, "--lengthscale", "0.25", "--noise", "0.04")
        self.assertIn("0.25", done.stderr)
        self.assertIn("0.04", done.stderr)
        self.assertEqual(self.mercer("generate", "gp", "-n", 10, "--quiet").stderr, "")

    def test_packed_output_reads_back(self):
        self.generate("a.csv.gz", "field", "-n", 50)
        plain = self.mercer("generate", "field", "-n", 50).stdout
        self.assertEqual(gzip.open(self.folder / "a.csv.gz", "rt").read(), plain)

    def test_json_says_what_was_written(self):
        record = self.json("generate", "grid", "-n", 400, "-o", "g.csv", "--seed", 9)
        self.assertEqual((record["d"], record["seed"], record["output"]), (2, 9, "g.csv"))
        self.assertEqual(len((self.folder / "g.csv").read_text().splitlines()), record["n"] + 1)


class SplitTest(CliCase):
    def test_lines_are_copied_unchanged_and_each_once(self):
        lines = ["a,b,y"] + [f'"{i}, {i}",{i}.50,{i * i}' for i in range(50)]
        self.write("d.csv", "\n".join(lines) + "\n")
        self.mercer("split", "d.csv", "--test-fraction", 0.2, "--train-out", "a.csv",
                    "--test-out", "b.csv")
        train = (self.folder / "a.csv").read_text().splitlines()
        test = (self.folder / "b.csv").read_text().splitlines()
        self.assertEqual((train[0], test[0]), (lines[0], lines[0]))
        self.assertEqual(len(test), 11)
        record = self.json("split", "d.csv", "--test-fraction", 0.2, "--train-out", "a.csv",
                           "--test-out", "b.csv")
        self.assertEqual((record["train_rows"], record["test_rows"]), (40, 10))
        self.assertEqual(sorted(train[1:] + test[1:]), sorted(lines[1:]))

    def test_a_file_without_header_and_quoted_newlines(self):
        self.write("n.csv", "1,2\n3,4\n5,6\n7,8\n")
        self.mercer("split", "n.csv", "--test-fraction", 0.5, "--train-out", "a.csv",
                    "--test-out", "b.csv")
        rows = (self.folder / "a.csv").read_text() + (self.folder / "b.csv").read_text()
        self.assertEqual(sorted(rows.split()), ["1,2", "3,4", "5,6", "7,8"])
        self.write("q.csv", 'k,y\n"a\nb",1\n"c ""\n d",2\n')
        self.mercer("split", "q.csv", "--test-fraction", 0.5, "--train-out", "a.csv",
                    "--test-out", "b.csv")
        text = (self.folder / "a.csv").read_text() + (self.folder / "b.csv").read_text()
        self.assertEqual(text.count('"a\nb",1\n') + text.count('"c ""\n d",2\n'), 2)


class FitTest(CliCase):
    KEYS = """n d task method plan hyperparameters log_marginal_likelihood certificate steps matvecs
              seconds peak_rss_bytes model"""

    def test_peak_memory_is_not_that_of_the_caller(self):
        self.generate("d.csv", "gp", "-n", 50, "--seed", 1)
        ballast = b"x" * (512 << 20)
        record = self.json("fit", "d.csv", "--target", "y", "--train", "none")
        self.assertLess(record["peak_rss_bytes"], len(ballast) / 2)

    def test_json_has_the_promised_keys(self):
        self.generate("d.csv", "gp", "-n", 120, "--seed", 1)
        record = self.json("fit", "d.csv", "--target", "y", "--restarts", 0)
        self.has(record, self.KEYS)
        self.has(record["hyperparameters"], "signal_variance noise_variance lengthscales")
        self.has(record["hyperparameters"]["standardised"],
                 "signal_variance noise_variance lengthscales parameters")
        self.has(record["log_marginal_likelihood"], "value low high method")
        self.has(record["certificate"], "relative_residual mean_error_bound mean_error_estimate accuracy")
        self.assertLessEqual(record["certificate"]["mean_error_estimate"], record["certificate"]["mean_error_bound"])
        self.has(record["seconds"], "total train solve")
        self.assertEqual((record["n"], record["d"]), (120, 2))
        self.assertEqual((record["task"], record["method"]), ("regression", "gp"))
        self.assertEqual(record["model"], "d.mcr")
        self.assertTrue((self.folder / "d.mcr").exists())

    def test_it_learns_the_truth_back(self):
        self.generate("d.csv", "gp", "-n", 500, "--kernel", "rbf", "--lengthscale", "0.15,0.3",
                      "--noise", "0.04", "--signal-variance", "2", "--seed", 2)
        values = self.json("fit", "d.csv", "--kernel", "rbf", "--restarts", 0)["hyperparameters"]
        # 500 points pin the noise to about 10 % and lengthscales of an rbf to about 15 %.
        self.assertAlmostEqual(values["noise_variance"], 0.04, delta=0.016)
        self.assertAlmostEqual(values["lengthscales"][0], 0.15, delta=0.07)
        self.assertAlmostEqual(values["lengthscales"][1], 0.30, delta=0.14)

    def test_fixed_hyperparameters_are_kept_and_the_likelihood_is_exact(self):
        path = self.generate("d.csv", "gp", "-n", 40, "-d", 1, "--seed", 4)
        record = self.json("fit", path, "--train", "none", "--no-standardize", "--kernel", "rbf",
                           "--lengthscale", "0.2", "--signal-variance", "1.5", "--noise", "0.05")
        values = record["hyperparameters"]
        self.assertAlmostEqual(values["signal_variance"], 1.5, places=12)
        self.assertAlmostEqual(values["noise_variance"], 0.05, places=12)
        self.assertAlmostEqual(values["lengthscales"][0], 0.2, places=12)
        table = read_csv(path.read_text())
        x = [[v] for v in table["x1"]]
        h = rbf_matrix(x, x, 0.2, 1.5)
        for i in range(40):
            h[i][i] += 0.05
        w = solve_dense(h, [table["y"]])[0]
        log_det = 0.0
        for k in range(40):  # pivots of the elimination of a positive definite matrix
            log_det += math.log(h[k][k])
            for i in range(k + 1, 40):
                factor = h[i][k] / h[k][k]
                h[i] = [u - factor * v for u, v in zip(h[i], h[k])]
        exact = -0.5 * sum(a * b for a, b in zip(w, table["y"])) - 0.5 * log_det - 20 * math.log(
            2 * math.pi)
        # Condition 1e3 and 40 rows in double: ten digits are left.
        self.assertAlmostEqual(record["log_marginal_likelihood"]["value"], exact, delta=1e-7)

    def test_original_units_follow_the_data(self):
        path = self.generate("d.csv", "gp", "-n", 100, "-d", 1, "--seed", 4)
        rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
        self.write("e.csv", "x1,y\n" + "".join(f"{1000 * float(x)!r},{7 + 10 * float(y)!r}\n"
                                               for x, y in rows))
        a = self.json("fit", "d.csv", "--restarts", 0)["hyperparameters"]
        b = self.json("fit", "e.csv", "--restarts", 0)["hyperparameters"]
        # The optimiser stops at a relative gradient, not at the last digit.
        self.assertAlmostEqual(b["lengthscales"][0] / a["lengthscales"][0], 1000, delta=10)
        self.assertAlmostEqual(b["noise_variance"] / a["noise_variance"], 100, delta=1)

    def test_held_out_scores(self):
        self.generate("d.csv", "friedman", "-n", 200, "-d", 5, "--seed", 1)
        record = self.json("fit", "d.csv", "--test-fraction", "0.25", "--restarts", 0)
        self.assertEqual((record["n"], record["evaluation"]["n"]), (150, 50))
        self.has(record["evaluation"], "n rmse mae smse nll crps coverage90 coverage95")
        self.assertLess(record["evaluation"]["smse"], 0.3)

    def test_standard_input_and_packed_input_give_the_same_model(self):
        path = self.generate("d.csv", "gp", "-n", 60)
        self.write("z.csv.gz", gzip.compress(path.read_bytes()))
        same = ("--train", "none", "--quiet", "--noise", "0.1")
        self.mercer("fit", "d.csv", *same, "-m", "a.mcr")
        self.mercer("fit", "z.csv.gz", *same, "-m", "b.mcr")
        self.mercer("fit", "-", *same, "-m", "c.mcr", stdin=path.read_text())
        models = [(self.folder / name).read_bytes() for name in ("a.mcr", "b.mcr", "c.mcr")]
        self.assertEqual(models[0], models[1])
        self.assertEqual(models[0], models[2])

    def test_messages_of_the_reader_are_passed_on(self):
        rows = "".join(f"{i},5,{math.sin(i)}\n" for i in range(30))
        self.write("d.csv", "x,k,y\n" + rows + "1,5,\n2,5,NA\n")
        done = self.mercer("fit", "d.csv", "--train", "none")
        self.assertIn("left out 2 rows with a missing target", done.stderr)
        record = self.json("fit", "d.csv", "--train", "none", "--quiet")
        self.assertEqual(record["data"]["rows_missing_target"], 2)
        self.assertEqual(record["data"]["dropped_constant"], ["k"])

    def test_summary_names_the_model_and_the_next_command(self):
        self.generate("d.csv", "gp", "-n", 50)
        text = self.mercer("fit", "d.csv", "--train", "none", "-m", "m.mcr").stdout
        self.assertIn("m.mcr", text)
        self.assertIn("Next: mercer predict m.mcr", text)
        self.assertIn("of the exact one", text)

    def test_quiet_is_quiet_and_plain_lines_are_plain(self):
        self.generate("d.csv", "gp", "-n", 50)
        self.assertEqual(self.mercer("fit", "d.csv", "--quiet", "--restarts", 0).stderr, "")
        self.assertNotIn("\033", self.mercer("fit", "d.csv", "--restarts", 0).stderr)


class SolveTest(CliCase):
    KEYS = """n d solver preconditioner rank operator precision iterations inner_iterations matvecs
              build_seconds solve_seconds relative_residual stop mean_error_bound mean_error_estimate peak_rss_bytes"""
    FIXED = ("--kernel", "rbf", "--lengthscale", "0.4", "--signal-variance", "1", "--noise", "0.02",
             "--no-standardize")

    def check_solution(self, *method):
        path = self.generate("d.csv", "gp", "-n", 60, "--seed", 8)
        record = self.json("solve", "d.csv", *self.FIXED, *method, "-o", "a.csv")
        self.has(record, self.KEYS)
        self.assertEqual(record["stop"], "converged")
        table = read_csv(path.read_text())
        points = list(zip(table["x1"], table["x2"]))
        h = rbf_matrix(points, points, 0.4, 1.0)
        a = read_csv((self.folder / "a.csv").read_text())["a"]
        residual = [y - sum(k * w for k, w in zip(row, a)) - 0.02 * own
                    for y, row, own in zip(table["y"], h, a)]
        relative = math.hypot(*residual) / math.hypot(*table["y"])
        self.assertLessEqual(relative, record["tolerance"])
        if relative > 1e-12:  # below, rounding in this check is part of the number
            self.assertAlmostEqual(record["relative_residual"] / relative, 1, delta=0.1)
        return record

    def test_cholesky(self):
        self.check_solution("--solver", "cholesky")

    def test_conjugate_gradients(self):
        record = self.check_solution("--solver", "cg", "--preconditioner", "none", "--tolerance",
                                     "1e-8", "--precision", "double", "--operator", "tiled")
        self.assertEqual((record["solver"], record["operator"], record["precision"]),
                         ("cg", "tiled", "double"))
        self.assertGreater(record["iterations"], 3)

    def test_every_operator_and_precision(self):
        for operator in ("tiled", "stored"):
            for precision in ("double", "mixed"):
                self.check_solution("--solver", "cg", "--operator", operator, "--precision",
                                    precision)

    def test_a_missed_tolerance_is_told_with_the_true_residual(self):
        self.generate("d.csv", "gp", "-n", 100, "--seed", 8)
        words = ("solve", "d.csv", *self.FIXED, "--solver", "cg", "--preconditioner", "none",
                 "--max-iterations", "2", "--tolerance", "1e-10")
        record = self.json(*words, code=5)
        self.assertEqual(record["stop"], "iteration_limit")
        self.assertGreater(record["relative_residual"], 1e-10)
        done = self.mercer(*words, "-o", "a.csv", code=5)
        self.assertIn("was not reached", done.stderr)
        self.assertFalse((self.folder / "a.csv").exists())


class PlanTest(CliCase):
    def test_table_and_json_agree_on_the_choice(self):
        self.generate("d.csv", "gp", "-n", 300)
        record = self.json("plan", "d.csv", "--target", "y")
        self.has(record, "n d reason methods peak_bytes seconds budget_bytes")
        chosen = [row["method"] for row in record["methods"] if row["chosen"]]
        self.assertGreaterEqual(len(chosen), 1)
        text = self.mercer("plan", "d.csv").stdout
        for method in chosen:
            self.assertIn(method, text)
        self.assertEqual(sorted(os.listdir(self.folder)), ["d.csv"])

    def test_a_solve_plans_no_training(self):
        self.generate("d.csv", "gp", "-n", 300)
        record = self.json("plan", "d.csv", "--for", "solve", "--solver", "cg")
        self.assertFalse(record["trains"])
        self.assertEqual(record["solver"], "cg")


class PredictTest(CliCase):
    def test_columns_and_their_order(self):
        _, _, test, model = fitted()
        table = read_csv(self.mercer("predict", model, test).stdout)
        self.assertEqual(list(table), PREDICTION)
        for m, latent, obs, low, high, bound, estimate in zip(*table.values()):
            self.assertLessEqual(estimate, bound)
            self.assertTrue(0 < latent < obs and low < m < high and bound >= 0)
            # 1.6449 is the 95 % quantile of the normal distribution.
            self.assertAlmostEqual((high - m) / obs, 1.6448536, places=5)

    def test_mean_and_variance_are_those_of_dense_algebra(self):
        train = self.generate("a.csv", "gp", "-n", 50, "--seed", 1)
        test = self.generate("b.csv", "gp", "-n", 20, "--seed", 2)
        self.mercer("fit", "a.csv", "--train", "none", "--no-standardize", "--kernel", "rbf",
                    "--lengthscale", "0.3", "--signal-variance", "2", "--noise", "0.1", "-m",
                    "m.mcr")
        a, b = read_csv(train.read_text()), read_csv(test.read_text())
        x, z = list(zip(a["x1"], a["x2"])), list(zip(b["x1"], b["x2"]))
        h, cross = rbf_matrix(x, x, 0.3, 2.0), rbf_matrix(z, x, 0.3, 2.0)
        for i in range(50):
            h[i][i] += 0.1
        w, *columns = solve_dense(h, [a["y"], *cross])
        for solver in ("cholesky", "cg"):
            p = read_csv(self.mercer("predict", "m.mcr", "b.csv", "--solver", solver).stdout)
            for i in range(20):
                mean = sum(u * v for u, v in zip(cross[i], w))
                variance = 2.0 - sum(u * v for u, v in zip(cross[i], columns[i]))
                self.assertAlmostEqual(p["mean"][i], mean, delta=1e-9 + p["error_bound"][i])
                # Iterative variances are good to a thousandth of the noise variance.
                self.assertAlmostEqual(p["sd_latent"][i] ** 2, variance, delta=1e-4)
                self.assertAlmostEqual(p["sd_obs"][i] ** 2, variance + 0.1, delta=1e-4)

    def test_file_stream_and_json_agree(self):
        _, _, test, model = fitted()
        text = self.mercer("predict", model, test).stdout
        self.mercer("predict", model, test, "-o", "p.csv")
        self.assertEqual((self.folder / "p.csv").read_text(), text)
        piped = self.mercer("predict", model, "-", stdin=test.read_text()).stdout
        self.assertEqual(piped, text)
        record = self.json("predict", model, test)
        self.assertEqual(record["mean"], read_csv(text)["mean"])
        summary = self.json("predict", model, test, "-o", "q.csv")
        self.assertEqual((summary["n"], summary["output"]), (90, "q.csv"))

    def test_without_variance_and_with_inputs(self):
        _, _, test, model = fitted()
        table = read_csv(self.mercer("predict", model, test, "--no-variance").stdout)
        self.assertEqual(list(table), ["mean", "error_bound", "error_estimate"])
        table = read_csv(self.mercer("predict", model, test, "--with-inputs").stdout)
        self.assertEqual(list(table), [f"x{c}" for c in range(1, 7)] + ["y"] + PREDICTION)
        self.assertEqual(table["x3"], read_csv(test.read_text())["x3"])

    def test_categories_are_learned_and_copied(self):
        rows = [f"{i / 10},{'red' if i % 3 else 'blue'},{math.sin(i / 10) + (i % 3 > 0)}"
                for i in range(60)]
        self.write("d.csv", "x,colour,y\n" + "\n".join(rows) + "\n")
        self.mercer("fit", "d.csv", "--categorical", "colour", "--restarts", 0, "-m", "m.mcr")
        text = self.mercer("predict", "m.mcr", "d.csv", "--with-inputs").stdout
        self.assertEqual(text.splitlines()[1].split(",")[:2], ["0.0", "blue"])

    def test_columns_are_found_by_name(self):
        _, _, test, model = fitted()
        rows = [line.split(",") for line in test.read_text().splitlines()]
        self.write("r.csv", "".join(",".join(["extra" if i == 0 else "text", *reversed(row)]) + "\n"
                                    for i, row in enumerate(rows)))
        self.assertEqual(self.mercer("predict", model, "r.csv").stdout,
                         self.mercer("predict", model, test).stdout)


class EvaluateTest(CliCase):
    def test_scores_are_those_of_the_predictions(self):
        _, _, test, model = fitted()
        scores = self.json("evaluate", model, test)
        self.has(scores, "n rmse mae smse nll crps coverage90 coverage95")
        p = read_csv(self.mercer("predict", model, test).stdout)
        y = read_csv(test.read_text())["y"]
        n = len(y)
        errors = [a - b for a, b in zip(y, p["mean"])]
        mse = sum(e * e for e in errors) / n
        z = [e / s for e, s in zip(errors, p["sd_obs"])]
        density = sum(0.5 * u * u + math.log(s) + 0.5 * math.log(2 * math.pi)
                      for u, s in zip(z, p["sd_obs"])) / n
        normal = statistics.NormalDist()
        crps = sum(s * (u * (2 * normal.cdf(u) - 1) + 2 * normal.pdf(u) - 1 / math.sqrt(math.pi))
                   for u, s in zip(z, p["sd_obs"])) / n
        expected = {"n": n, "rmse": math.sqrt(mse), "mae": sum(map(abs, errors)) / n,
                    "smse": mse / statistics.pvariance(y), "nll": density, "crps": crps,
                    "coverage90": sum(abs(u) <= normal.inv_cdf(0.95) for u in z) / n,
                    "coverage95": sum(abs(u) <= normal.inv_cdf(0.975) for u in z) / n}
        for name, value in expected.items():
            self.assertAlmostEqual(scores[name], value, places=9, msg=name)
        self.assertLess(scores["smse"], 0.2)  # Friedman's function is easy to learn from 210 rows

    def test_table(self):
        _, _, test, model = fitted()
        text = self.mercer("evaluate", model, test).stdout
        for name in ("rmse", "coverage95"):
            self.assertIn(name, text)

    def test_rows_without_a_target_are_counted(self):
        _, _, test, model = fitted()
        lines = test.read_text().splitlines()
        lines[1] = lines[1].rsplit(",", 1)[0] + ","
        self.write("t.csv", "\n".join(lines) + "\n")
        scores = self.json("evaluate", model, "t.csv")
        self.assertEqual((scores["n"], scores["rows_missing_target"]), (89, 1))


class InfoTest(CliCase):
    def test_text_and_json(self):
        _, _, _, model = fitted()
        record = self.json("info", model)
        self.has(record, "n d kernel mean target inputs hyperparameters certificate record")
        self.assertEqual((record["n"], record["d"], record["target"]), (210, 6, "y"))
        text = self.mercer("info", model).stdout
        for word in ("matern52", "210 rows", "x6", "of the exact one"):
            self.assertIn(word, text)
