"""What predict and evaluate write, and the files that mercer replaces."""

import csv
import gzip
import io
import json
import math
import os
import stat
import statistics
import subprocess

from harness import CliCase, read_csv, rows_of


class ReplacedFilesTest(CliCase):
    def mode(self, name):
        return stat.S_IMODE(os.stat(self.folder / name).st_mode)

    def fit(self, *words, **keywords):
        return self.mercer("fit", "d.csv", "--train", "none", *words, **keywords)

    def setUp(self):
        super().setUp()
        self.generate("d.csv", "friedman", "-n", 40, "-d", 5)

    def test_a_private_model_stays_private(self):
        old = os.umask(0o022)
        try:
            self.fit("-m", "m.mcr")
            self.assertEqual(self.mode("m.mcr"), 0o644)
            os.chmod(self.folder / "m.mcr", 0o600)
            self.fit("-m", "m.mcr", "--noise", 0.5)
            self.assertEqual(self.mode("m.mcr"), 0o600)
            # The files of the other options too.
            for name in ("p.csv", "p.csv.gz", "c.ckp", "t.csv"):
                self.write(name, "")
                os.chmod(self.folder / name, 0o600)
            self.mercer("predict", "m.mcr", "d.csv", "-o", "p.csv")
            self.mercer("predict", "m.mcr", "d.csv", "-o", "p.csv.gz")
            os.remove(self.folder / "c.ckp")
            words = ("fit", "d.csv", "--steps", 2, "--restarts", 0, "--checkpoint", "c.ckp", "-m", "n.mcr")
            self.mercer(*words)
            os.chmod(self.folder / "c.ckp", 0o600)
            self.mercer(*words, "--trace", "t.csv", "--validation", "d.csv")
            for name in ("p.csv", "p.csv.gz", "c.ckp", "t.csv"):
                self.assertEqual((name, self.mode(name)), (name, 0o600))
                self.assertGreater(os.path.getsize(self.folder / name), 0)
        finally:
            os.umask(old)

    def test_new_files_obey_the_umask(self):
        old = os.umask(0o027)
        try:
            self.fit("-m", "m.mcr")
            self.mercer("predict", "m.mcr", "d.csv", "-o", "p.csv")
        finally:
            os.umask(old)
        self.assertEqual(self.mode("m.mcr"), 0o640)
        self.assertEqual(self.mode("p.csv"), 0o640)

    def test_a_link_is_written_through(self):
        (self.folder / "store").mkdir()
        os.symlink("store/real.mcr", self.folder / "m.mcr")
        os.symlink("store/real.csv", self.folder / "p.csv")
        for _ in range(2):
            self.fit("-m", "m.mcr")
            self.mercer("predict", "m.mcr", "d.csv", "-o", "p.csv")
        for name in ("m.mcr", "p.csv"):
            self.assertTrue((self.folder / name).is_symlink())
        self.assertEqual(sorted(os.listdir(self.folder / "store")), ["real.csv", "real.mcr"])

    def test_a_read_only_file_is_refused_before_the_work(self):
        self.fit("-m", "m.mcr")
        for name in ("m.mcr", "p.csv", "c.ckp", "t.csv"):
            if name != "m.mcr":
                self.write(name, "precious")
            os.chmod(self.folder / name, 0o444)
        before = (self.folder / "m.mcr").read_bytes()
        self.refused(2, "fit", "d.csv", "--train", "none", "-m", "m.mcr", saying=("--model", "m.mcr", "read-only"))
        self.refused(2, "fit", "d.csv", "-m", "n.mcr", "--checkpoint", "c.ckp", saying="read-only")
        self.refused(2, "fit", "d.csv", "-m", "n.mcr", "--trace", "t.csv", "--validation", "d.csv",
                     saying="read-only")
        self.refused(2, "predict", "m.mcr", "d.csv", "-o", "p.csv", saying=("--output", "read-only", "chmod"))
        self.assertEqual((self.folder / "m.mcr").read_bytes(), before)
        self.assertEqual((self.folder / "p.csv").read_text(), "precious")

    def test_a_model_that_is_replaced_is_named(self):
        first = self.fit("-m", "m.mcr")
        self.assertNotIn("replaces", first.stderr)
        os.utime(self.folder / "m.mcr", (86400 * 365, 86400 * 365))
        second = self.fit("-m", "m.mcr", env={**os.environ, "TZ": "UTC"})
        self.assertIn("'m.mcr' is there already, a model written on 1971-01-01 00:00: this run replaces it",
                      second.stderr)
        self.assertEqual(self.fit("-m", "m.mcr", "--quiet").stderr, "")
        # A file that is no model is somebody's data; an empty one is nobody's.
        self.write("other.csv", "a,b\n1,2\n")
        self.refused(2, "fit", "d.csv", "--train", "none", "-m", "other.csv", saying=("other.csv", "no model file"))
        self.write("empty.mcr", "")
        self.fit("-m", "empty.mcr")


class CarriedColumnsTest(CliCase):
    """--id, --with-inputs, --row-numbers."""

    DATA = ('house;a;colour;mean;note;b;y\n'
            '007;1.50;"red";x;"a, b";2;NA\n'
            '"5 ""high"" ";1e0;blue;;#N/A;3;1\n'
            '009;;red;z;;4;2\n'
            'NA; 3 ;blue;w;"two\nlines";5.;3\n')

    def setUp(self):
        super().setUp()
        rows = [f"{i / 7},{i * i % 11},{'red' if i % 3 else 'blue'},{i % 5 + 0.25}" for i in range(30)]
        self.write("train.csv", "a,b,colour,y\n" + "\n".join(rows) + "\n")
        self.mercer("fit", "train.csv", "--target", "y", "--categorical", "colour", "--train", "none", "-m", "m.mcr")
        self.write("d.csv", self.DATA)
        self.write("full.csv", self.DATA.replace("009;;", "009;2;"))

    def texts(self, text):
        rows = list(csv.reader(io.StringIO(text)))
        return rows[0], rows[1:]

    PREDICTED = ["mean", "sd_latent", "sd_obs", "q05", "q95", "error_bound"]

    def test_id_columns_come_first_as_they_stand_in_the_file(self):
        plain = self.texts(self.mercer("predict", "m.mcr", "full.csv").stdout)
        self.assertEqual(plain[0], self.PREDICTED)
        head, rows = self.texts(self.mercer("predict", "m.mcr", "full.csv", "--id", "house").stdout)
        self.assertEqual(head, ["house", *self.PREDICTED])
        self.assertEqual([row[0] for row in rows], ["007", '5 "high" ', "009", "NA"])
        self.assertEqual([row[1:] for row in rows], plain[1])
        # Also columns that the model reads as numbers, and missing cells.
        head, rows = self.texts(self.mercer("predict", "m.mcr", "full.csv", "--id", "note,a").stdout)
        self.assertEqual(head, ["note", "a", *self.PREDICTED])
        self.assertEqual([row[:2] for row in rows],
                         [["a, b", "1.50"], ["#N/A", "1e0"], ["", "2"], ["two\nlines", "3"]])
        self.refused(3, "predict", "m.mcr", "full.csv", "--id", "hause", saying=("no column 'hause'", "'house'"))
        self.refused(2, "predict", "m.mcr", "full.csv", "--id", "house,house", saying=("'house'", "twice"))

    def test_the_id_of_the_model_is_carried_without_asking(self):
        text = (self.folder / "train.csv").read_text().splitlines()
        self.write("ids.csv", "\n".join(["house," + text[0]] + [f"h{i},{line}" for i, line in enumerate(text[1:])]))
        self.mercer("fit", "ids.csv", "--target", "y", "--categorical", "colour", "--id", "house", "--train", "none",
                    "-m", "i.mcr")
        head, rows = self.texts(self.mercer("predict", "i.mcr", "full.csv").stdout)
        self.assertEqual(head, ["house", *self.PREDICTED])
        self.assertEqual([row[0] for row in rows], ["007", '5 "high" ', "009", "NA"])
        self.assertEqual(self.texts(self.mercer("predict", "i.mcr", "full.csv", "--id", "b").stdout)[0],
                         ["b", *self.PREDICTED])
        self.assertEqual(self.texts(self.mercer("predict", "i.mcr", "full.csv", "--with-inputs").stdout)[0][:2],
                         ["house", "a"])
        # DATA without it is predicted all the same.
        self.assertEqual(self.texts(self.mercer("predict", "i.mcr", "train.csv").stdout)[0], self.PREDICTED)

    def test_all_columns(self):
        done = self.mercer("predict", "m.mcr", "full.csv", "--with-inputs", "--id", "b")
        head, rows = self.texts(done.stdout)
        # The column of DATA that has a name of ours gets another, which is said.
        self.assertEqual(head, ["b", "house", "a", "colour", "input_mean", "note", "y", *self.PREDICTED])
        self.assertIn("the column 'mean' of DATA is written as 'input_mean'", done.stderr)
        self.assertEqual(rows[0][:7], ["2", "007", "1.50", "red", "x", "a, b", "NA"])
        self.assertEqual([row[0] for row in rows], ["2", "3", "4", "5."])
        self.write("clash.csv", "a,b,colour,mean,input_mean,row\n1,2,red,m,i,r\n")
        head, rows = self.texts(
            self.mercer("predict", "m.mcr", "clash.csv", "--with-inputs", "--row-numbers").stdout)
        self.assertEqual(head, ["row", "a", "b", "colour", "input_input_mean", "input_mean", "input_row",
                                *self.PREDICTED])
        self.assertEqual(rows[0][:7], ["1", "1", "2", "red", "m", "i", "r"])
        # Packed, and from standard input without a header.
        self.mercer("predict", "m.mcr", "full.csv", "--with-inputs", "-o", "p.csv.gz")
        with gzip.open(self.folder / "p.csv.gz", "rt") as file:
            self.assertEqual(len(list(csv.reader(file))), 5)
        self.write("bare.csv", "\n".join(f"{i},{i * i % 7},{i + 0.5}" for i in range(20)))
        self.mercer("fit", "bare.csv", "--train", "none", "-m", "bare.mcr")
        head, rows = self.texts(self.mercer("predict", "bare.mcr", "-", "--with-inputs", stdin="3,4\n5,6\n").stdout)
        self.assertEqual(head, ["x1", "x2", *self.PREDICTED])
        self.assertEqual([row[:2] for row in rows], [["3", "4"], ["5", "6"]])

    def test_row_numbers_find_what_was_left_out(self):
        commented = "# a comment\n" + self.DATA.replace("009;", "\n009;")
        self.write("c.csv", commented)
        for name in ("d.csv", "c.csv"):
            head, rows = self.texts(
                self.mercer("predict", "m.mcr", name, "--drop-missing", "--id", "house").stdout)
            self.assertEqual(head[:2], ["row", "house"])
            self.assertEqual([row[:2] for row in rows], [["1", "007"], ["2", '5 "high" '], ["4", "NA"]])
        head, rows = self.texts(self.mercer("predict", "m.mcr", "full.csv", "--row-numbers").stdout)
        self.assertEqual(head, ["row", *self.PREDICTED])
        self.assertEqual([row[0] for row in rows], ["1", "2", "3", "4"])

    def test_in_json_they_stand_in_an_object_of_their_own(self):
        record = self.json("predict", "m.mcr", "d.csv", "--drop-missing", "--with-inputs")
        self.assertEqual(record["row"], [1, 2, 4])
        self.assertEqual(record["n"], 3)
        self.assertEqual(len(record["mean"]), 3)
        self.assertEqual(record["carried"]["house"], ["007", '5 "high" ', "NA"])
        self.assertEqual(record["carried"]["mean"], ["x", "", "w"])
        self.assertEqual(record["carried"]["note"], ["a, b", "#N/A", "two\nlines"])
        self.assertEqual(list(record["carried"]), ["house", "a", "colour", "mean", "note", "b", "y"])
        self.write("latin.csv", "a,b,colour,n\n1,2,red,M\xfcller\n".encode("latin-1"))
        done = self.mercer("predict", "m.mcr", "latin.csv", "--id", "n", "--json", code=3)
        self.assertIn("line 2, column 'n'", done.stderr)
        self.assertIn("UTF-8", done.stderr)
        done = self.mercer("predict", "m.mcr", "latin.csv", "--id", "n", "-o", "out.csv")
        self.assertIn("M\xfcller".encode("latin-1"), (self.folder / "out.csv").read_bytes())
        self.assertNotIn("carried", self.json("predict", "m.mcr", "d.csv", "--drop-missing"))


class StreamedJsonTest(CliCase):
    """predict --json: memory does not depend on the rows, and nothing is printed before all is well."""

    def many(self, name, rows):
        self.write(name, "x1,x2,x3,x4,x5\n" + "".join(f"{i % 97},{i % 89},{i % 83},1,2\n" for i in range(rows)))

    def setUp(self):
        super().setUp()
        self.generate("t.csv", "friedman", "-n", 40, "-d", 5)
        self.mercer("fit", "t.csv", "--train", "none", "-m", "m.mcr")

    def test_it_is_what_the_table_is(self):
        self.many("d.csv", 9000)
        table = rows_of(self.mercer("predict", "m.mcr", "d.csv").stdout)
        record = self.json("predict", "m.mcr", "d.csv")
        for name in table[0]:
            self.assertEqual(record[name], [float(row[name]) for row in table], name)
        self.has(record, "n model output largest_error_bound variance clamped_variances matvecs seconds "
                         "peak_rss_bytes")

    def test_memory_does_not_grow_with_the_rows(self):
        peaks = []
        for rows in (20_000, 320_000):
            self.many("d.csv", rows)
            command = [os.environ["MERCER_PROGRAM"], "predict", "m.mcr", "d.csv", "--json", "--id", "x1"]
            with open(self.folder / "out.json", "w", encoding="utf-8") as out:
                process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=subprocess.DEVNULL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            record = json.loads((self.folder / "out.json").read_text())
            self.assertEqual(len(record["mean"]), rows)
            self.assertEqual(record["carried"]["x1"][1000], str(1000 % 97))
            peaks.append(usage.ru_maxrss * 1024)
        # Held in memory the larger one took 155 MB more; of its text of 50 MB, 16 MiB are kept.
        self.assertLess(peaks[1] - peaks[0], 40e6)

    def test_a_failure_in_the_middle_prints_no_half_object(self):
        self.many("d.csv", 9000)
        with open(self.folder / "d.csv", "a", encoding="utf-8") as out:
            out.write("1,2,oops,4,5\n")
        done = self.mercer("predict", "m.mcr", "d.csv", "--json", code=3)
        self.assertNotIn("\"mean\"", done.stdout)
        self.assertIn("line 9002", done.stderr)


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
        self.assertEqual(head, "mean,sd_latent,sd_obs,q50,error_bound")
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
        self.assertEqual(list(table), ["median", "error_bound"])
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
