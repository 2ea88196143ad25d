"""What is predicted of y: quantiles of every likelihood, and a target that was learned as its logarithm."""

import math
import statistics

from harness import CliCase, read_csv, rows_of


class QuantilesTest(CliCase):
    """--quantiles, against the distributions themselves."""

    PROBABILITIES = (0.001, 0.025, 0.3, 0.5, 0.95, 0.9999)
    NAMES = ("q001", "q025", "q30", "q50", "q95", "q9999")

    def predicted(self, *words):
        given = ",".join(str(p) for p in self.PROBABILITIES)
        table = rows_of(self.mercer("predict", *words, "--quantiles", given).stdout)
        self.assertEqual([name for name in table[0] if name.startswith("q")], list(self.NAMES))
        return [{name: float(value) for name, value in row.items()} for row in table]

    def fit(self, kind, *words):
        """A model of this likelihood, drawn and fitted."""
        self.generate("d.csv", "gp", "-n", 60, "-d", 2, "--likelihood", kind, "--seed", 5)
        self.mercer("fit", "d.csv", "--likelihood", kind, "--train", "none", "-m", "m.mcr", *words)

    def test_gaussian(self):
        self.generate("d.csv", "friedman", "-n", 60, "-d", 5)
        self.mercer("fit", "d.csv", "--train", "none", "-m", "m.mcr")
        plain = rows_of(self.mercer("predict", "m.mcr", "d.csv").stdout)
        for row, old in zip(self.predicted("m.mcr", "d.csv"), plain):
            self.assertEqual(row["q95"], float(old["q95"]))
            for name, p in zip(self.NAMES, self.PROBABILITIES):
                exact = statistics.NormalDist(row["mean"], row["sd_obs"]).inv_cdf(p)
                # Both quantiles of the normal are right to a few last digits.
                self.assertAlmostEqual(row[name], exact, delta=1e-12 * (abs(row["mean"]) + row["sd_obs"]))
        head = self.mercer("predict", "m.mcr", "d.csv", "--quantiles", "0.5").stdout.splitlines()[0]
        self.assertEqual(head, "mean,sd_latent,sd_obs,q50,error_bound,error_estimate")
        self.assertEqual(len(self.json("predict", "m.mcr", "d.csv", "--quantiles", "0.25,0.75")["q75"]), 60)

    def average(self, row, value):
        """Of a function of f over the belief about f: Simpson's rule over 9 standard deviations."""
        mean, sd, n = row["latent_mean"], row["sd_latent"], 400
        total = 0
        for i in range(n + 1):
            z = -9 + 18 * i / n
            weight = 1 if i in (0, n) else 4 if i % 2 else 2
            total += weight * math.exp(-z * z / 2) * value(mean + sd * z)
        return total * 18 / n / 3 / math.sqrt(2 * math.pi)

    def test_poisson(self):
        self.fit("poisson")

        def below(k, f):  # P(Y <= k | f)
            rate, term, total = math.exp(f), math.exp(-math.exp(f)), 0
            for i in range(k + 1):
                total += term
                term *= rate / (i + 1)
            return total

        for row in self.predicted("m.mcr", "d.csv")[::6]:
            for name, p in zip(self.NAMES, self.PROBABILITIES):
                k = int(row[name])
                self.assertEqual(row[name], k)
                self.assertGreaterEqual(self.average(row, lambda f: below(k, f)), p - 1e-9)
                if k > 0:
                    self.assertLess(self.average(row, lambda f: below(k - 1, f)), p + 1e-9)

    def test_student_t(self):
        self.fit("student-t:df=3", "--no-standardize")
        record = self.json("info", "m.mcr")
        scale = record["hyperparameters"]["standardised"]["parameters"]["scale"]

        def cdf(t):  # of Student's t with three degrees of freedom
            a = t / math.sqrt(3)
            return 0.5 + (math.atan(a) + a / (1 + a * a)) / math.pi

        for row in self.predicted("m.mcr", "d.csv")[::6]:
            for name, p in zip(self.NAMES, self.PROBABILITIES):
                # The density is at most 0.37 / scale, and the root is found to about 1e-10.
                found = self.average(row, lambda f: cdf((row[name] - f) / scale))
                self.assertAlmostEqual(found, p, delta=1e-7)

    def test_counts_with_spread(self):
        self.fit("negative-binomial")
        for row in self.predicted("m.mcr", "d.csv"):
            values = [row[name] for name in self.NAMES]
            self.assertEqual(values, sorted(values))
            self.assertEqual(values, [int(value) for value in values])

    def test_refusals(self):
        self.generate("d.csv", "friedman", "-n", 40, "-d", 5)
        self.mercer("fit", "d.csv", "--train", "none", "-m", "m.mcr")
        for text, words in (("0", "positive and below 1"), ("1", "positive and below 1"), ("0.5,0.5", "twice"),
                            ("1e-9", "between"), ("half", "half")):
            self.refused(2, "predict", "m.mcr", "d.csv", "--quantiles", text, saying=("quantiles", words))
        self.refused(2, "predict", "m.mcr", "d.csv", "--quantiles", "0.5", "--no-variance", saying="standard deviations")
        self.write("c.csv", "a,y\n" + "".join(f"{i},{'yes' if i > 9 else 'no'}\n" for i in range(20)))
        self.mercer("fit", "c.csv", "--train", "none", "-m", "c.mcr")
        self.refused(2, "predict", "c.mcr", "c.csv", "--quantiles", "0.5", saying="classes")


class LogTargetTest(CliCase):
    """fit --log-target: what is predicted of y is log-normal, with the normal of a fit to log y by hand."""

    WORDS = ("--train", "none", "--kernel", "matern52", "--lengthscale", "1.5", "--noise", "0.1", "--mean", "linear",
             "--seed", 4)

    def setUp(self):
        super().setUp()
        random = [((i * 7919) % 1009) / 1009 for i in range(1, 241)]
        rows = [(random[3 * i], random[3 * i + 1],
                 math.exp(3 + 2 * math.sin(5 * random[3 * i]) + random[3 * i + 1] + 0.4 * (random[3 * i + 2] - 0.5)))
                for i in range(80)]
        self.targets = [y for _, _, y in rows[50:]]
        self.table("train.csv", rows[:50])
        self.table("test.csv", rows[50:])
        self.table("log_train.csv", [(a, b, math.log(y)) for a, b, y in rows[:50]])
        self.table("log_test.csv", [(a, b, math.log(y)) for a, b, y in rows[50:]])
        self.mercer("fit", "train.csv", "--log-target", "-m", "m.mcr", *self.WORDS)
        self.mercer("fit", "log_train.csv", "-m", "l.mcr", *self.WORDS)

    def table(self, name, rows):
        self.write(name, "a,b,price\n" + "".join(f"{a!r},{b!r},{y!r}\n" for a, b, y in rows))

    def columns(self, *words):
        return read_csv(self.mercer("predict", *words).stdout)

    def normals(self, *words):
        """(mean, sd of f, sd of log y, bound) of every row, from the fit by hand."""
        table = self.columns("l.mcr", "log_test.csv", *words)
        return list(zip(table["mean"], table["sd_latent"], table["sd_obs"], table["error_bound"]))

    def test_predictions_are_those_of_the_log_normal(self):
        table = self.columns("m.mcr", "test.csv", "--quantiles", "0.05,0.5,0.95")
        sd_bound = self.json("predict", "l.mcr", "log_test.csv")["sd_error_bound"]
        self.assertAlmostEqual(self.json("predict", "m.mcr", "test.csv")["sd_error_bound"] / sd_bound, 1, delta=0.5)
        for i, (m, v, s, bound) in enumerate(self.normals()):
            mean = math.exp(m + s * s / 2)
            latent = math.exp(m + v * v / 2) * math.sqrt(math.expm1(v * v))
            # The same sums in another order of the logarithms: some thousand last digits.
            for name, exact in (("mean", mean), ("sd_obs", mean * math.sqrt(math.expm1(s * s))),
                                ("sd_latent", latent), ("q50", math.exp(m)),
                                ("q05", math.exp(m - 1.6448536269514722 * s)),
                                ("q95", math.exp(m + 1.6448536269514722 * s))):
                self.assertAlmostEqual(table[name][i] / exact, 1, delta=1e-9, msg=name)
            # The errors of the logarithm and of its sd, carried over; they are rounding here, half as much again
            # where sums have another order.
            largest = mean * math.expm1(bound + sd_bound * (v + sd_bound / 2))
            self.assertGreaterEqual(table["error_bound"][i], largest / 2)
            self.assertLess(table["error_bound"][i], 2 * largest + 1e-13 * mean)

    def test_the_bound_holds_for_a_solve_that_was_stopped_early(self):
        exact = self.columns("m.mcr", "test.csv")
        self.mercer("fit", "train.csv", "--log-target", "-m", "rough.mcr", *self.WORDS, "--solver", "cg",
                    "--preconditioner", "none", "--tolerance", "1e-2")
        rough = self.columns("rough.mcr", "test.csv")
        errors = [abs(a - b) for a, b in zip(rough["mean"], exact["mean"])]
        self.assertGreater(max(errors), 1e-6)
        for error, bound, other in zip(errors, rough["error_bound"], exact["error_bound"]):
            self.assertLessEqual(error, bound + other)

    def test_scores_are_of_the_target(self):
        record = self.json("evaluate", "m.mcr", "test.csv")
        normals = self.normals()
        n = len(normals)
        errors = [math.exp(m + s * s / 2) - y for (m, _, s, _), y in zip(normals, self.targets)]
        self.assertAlmostEqual(record["rmse"], math.sqrt(sum(e * e for e in errors) / n), delta=1e-9 * record["rmse"])
        self.assertAlmostEqual(record["mae"], sum(map(abs, errors)) / n, delta=1e-9 * record["mae"])
        by_hand = self.json("evaluate", "l.mcr", "log_test.csv")
        # The density of y is that of log y over y; the intervals are the same.
        self.assertAlmostEqual(record["nll"], by_hand["nll"] + sum(map(math.log, self.targets)) / n, delta=1e-9)
        self.assertEqual(record["coverage90"], by_hand["coverage90"])
        self.assertEqual(record["coverage95"], by_hand["coverage95"])
        self.assertAlmostEqual(record["crps"], self.crps(normals) / n, delta=1e-6 * record["crps"])
        self.refused(2, "evaluate", "m.mcr", "test.csv", "--variance", "none", saying="variances")

    def crps(self, normals):
        """By its definition: the integral of (F(t) - [t >= y])^2, substituted t = exp(u)."""
        total = 0
        for (m, _, s, _), y in zip(normals, self.targets):
            w = (math.log(y) - m) / s
            for low, high, above in ((-9, w, 0), (w, max(w, 9), 1)):
                steps = 600
                for i in range(steps + 1):  # Simpson's rule
                    z = low + (high - low) * i / steps
                    weight = 1 if i in (0, steps) else 4 if i % 2 else 2
                    distance = 0.5 * math.erfc(z / math.sqrt(2) if above else -z / math.sqrt(2))
                    total += weight * distance**2 * math.exp(m + s * z) * s * (high - low) / steps / 3
        return total

    def test_draws_and_predictions_without_variances(self):
        ours = self.columns("m.mcr", "test.csv", "--samples", 3)
        by_hand = self.columns("l.mcr", "log_test.csv", "--samples", 3)
        for name in ("sample_1", "sample_3"):
            for a, b in zip(ours[name], by_hand[name]):
                self.assertAlmostEqual(a / math.exp(b), 1, delta=1e-8)
        table = self.columns("m.mcr", "test.csv", "--no-variance")
        self.assertEqual(list(table), ["median", "error_bound", "error_estimate"])
        for a, (m, _, _, _) in zip(table["median"], self.normals()):
            self.assertAlmostEqual(a / math.exp(m), 1, delta=1e-9)

    def test_it_is_said_and_kept(self):
        done = self.mercer("fit", "train.csv", "--log-target", "-m", "n.mcr", *self.WORDS)
        self.assertIn("the logarithm of the target is learned", done.stdout)
        self.assertIn("(units of log price)", done.stdout)
        text = self.mercer("info", "m.mcr").stdout
        self.assertIn("price, learned as its logarithm", text)
        self.assertIn("(units of log price)", text)
        record = self.json("info", "m.mcr")
        self.assertIs(record["log_target"], True)
        self.assertEqual(record["certificate"]["of"], "the mean of log price")
        self.assertIs(self.json("info", "l.mcr")["log_target"], False)
        again = self.json("fit", "train.csv", "--log-target", "-m", "n.mcr", *self.WORDS)
        self.assertIs(again["options"]["log_target"], True)
        for verb in ("solve", "plan"):
            self.assertIs(self.json(verb, "train.csv", "--log-target")["data"]["log_target"], True)
        # A solve is that of the logarithms.
        self.assertAlmostEqual(self.json("solve", "train.csv", "--log-target")["mean_error_bound"],
                               self.json("solve", "log_train.csv")["mean_error_bound"], delta=1e-9)

    def test_learning_is_that_of_the_logarithm(self):
        words = ("--restarts", 0, "--test-fraction", 0.2)
        ours = self.json("fit", "train.csv", "--log-target", "-m", "n.mcr", *words)
        by_hand = self.json("fit", "log_train.csv", "-m", "o.mcr", *words)
        self.assertAlmostEqual(ours["log_marginal_likelihood"]["value"], by_hand["log_marginal_likelihood"]["value"],
                               delta=1e-6)
        self.assertGreater(ours["evaluation"]["rmse"], by_hand["evaluation"]["rmse"])

    def test_refusals(self):
        self.write("zero.csv", "a,y\n1,2\n2,0\n3,4\n")
        self.refused(3, "fit", "zero.csv", "--log-target", saying=("line 3, column 'y'", "--log-target", "positive"))
        self.table("bad.csv", [(0.1, 0.2, 3.0), (0.3, 0.4, -1.0)])
        self.refused(3, "evaluate", "m.mcr", "bad.csv", saying=("line 3, column 'price'", "positive"))
        self.write("text.csv", "a,y\n1,no\n2,yes\n3,no\n")
        self.refused(3, "fit", "text.csv", "--log-target", saying=("holds text", "--log-target"))
        for words in (("--likelihood", "student-t"), ("--likelihood", "poisson"), ("--task", "classification")):
            self.refused(2, "fit", "train.csv", "--log-target", *words, saying="--log-target")
        self.refused(2, "fit", "train.csv", "--log-target", "--method", "krr", saying=("--log-target", "variances"))
        self.write("noise.csv", "a,e,y\n1,0.1,2\n2,0.2,3\n3,0.1,4\n")
        self.refused(2, "fit", "noise.csv", "--log-target", "--noise-column", "e", saying=("--noise-column", "--log-target"))
        # Ratings are numbers when their logarithm is asked for.
        self.write("stars.csv", "a,y\n" + "".join(f"{i},{i % 4 + 1}\n" for i in range(40)))
        self.assertEqual(self.json("fit", "stars.csv", "--log-target", "--train", "none", "-m", "s.mcr")["task"], "regression")
