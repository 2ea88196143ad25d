"""Rows that are read in passes: --stream, --reservoir, plans, refusals, interruption and memory."""

import gzip
import os
import random
import signal
import subprocess
import time

from harness import CliCase, read_report, start, watched

STREAMING = "srm dtc fitc vfe".split()
FIXED = ("--train", "none", "--lengthscale", "1.5", "--noise", "0.05", "--signal-variance", "1")
TIMEOUT = 300


class StreamTest(CliCase):
    def data(self, n=1200):
        self.generate("d.csv", "friedman", "-n", n, "-d", 5, "--seed", 4)
        self.generate("t.csv", "friedman", "-n", 20, "-d", 5, "--seed", 5)
        self.generate("base.csv", "friedman", "-n", 25, "-d", 5, "--seed", 6)

    def predictions(self, model):
        return self.mercer("predict", model, "t.csv", "-o", "-").stdout

    def test_one_pass_is_the_fit_in_memory(self):
        self.data()
        for name in STREAMING:
            with self.subTest(method=name):
                words = ("fit", "d.csv", "--target", "y", *FIXED, "--method", name, "--base", "base.csv")
                memory = self.json(*words, "-m", "a.mcr", "--stream", "never")
                passes = self.json(*words, "-m", "b.mcr", "--stream", "always", "--reservoir", 100)
                self.assertFalse(memory["streamed"])
                self.assertTrue(passes["streamed"])
                self.assertEqual((passes["passes"], passes["reservoir_rows"], passes["n"]), (2, 100, 1200))
                self.assertGreater(passes["rows_per_second"], 0)
                value = memory["log_marginal_likelihood"]["value"]
                # The same sums in other pieces.
                self.assertAlmostEqual(passes["log_marginal_likelihood"]["value"], value, delta=1e-9 * abs(value))
                self.assertEqual(passes["log_marginal_likelihood"]["rows"], 1200)
                self.assertEqual(passes["log_marginal_likelihood"]["kind"], memory["log_marginal_likelihood"]["kind"])
                self.assertEqual(self.json("info", "b.mcr")["n"], 1200)
                self.assertTrue(self.json("info", "b.mcr")["record"]["streamed"])
                self.assertLess(os.path.getsize(self.folder / "b.mcr"), 60000)

    def test_all_rows_have_their_say(self):
        self.data(3000)
        words = ("fit", "d.csv", "--target", "y", "--method", "vfe", "--rank", 20, "--restarts", 0)
        passes = self.json(*words, "-m", "b.mcr", "--stream", "always", "--reservoir", 300)
        self.assertGreaterEqual(passes["passes"], 3)
        self.assertLessEqual(passes["passes"], 8)
        self.assertLessEqual(passes["full_gradients"], 3)
        self.assertGreaterEqual(passes["log_marginal_likelihood"]["value"], passes["full_steps"][0]["log_likelihood"])
        text = self.mercer(*words, "-m", "b.mcr", "--stream", "always", "--reservoir", 300).stdout
        for word in ("Passes", "300 of them in memory", "on 3,000 rows", "a lower bound by vfe"):
            self.assertIn(word, text)
        plan = self.json("plan", "d.csv", "--target", "y", "--method", "vfe", "--rank", 20, "--stream", "always",
                         "--reservoir", 300)
        self.assertEqual((plan["streamed"], plan["n"], plan["reservoir_rows"]), (True, 3000, 300))
        self.assertLessEqual(plan["least_passes"], passes["passes"])
        self.assertGreaterEqual(plan["most_passes"], passes["passes"])
        self.assertIn("passes", {row["stage"] for row in plan["methods"]})
        self.assertIn("3 to 8 passes", self.mercer("plan", "d.csv", "--target", "y", "--method", "vfe", "--rank", 20,
                                                   "--stream", "always", "--reservoir", 300).stdout)

    def test_packed_files_and_missing_cells(self):
        self.data(400)
        header, *rows = (self.folder / "d.csv").read_text().splitlines()
        rows[3] = rows[3].rsplit(",", 1)[0] + ","
        text = "\n".join([header, *rows]) + "\n"
        self.write("d.csv", text)
        self.write("d.csv.gz", gzip.compress(text.encode()))
        words = (*FIXED, "--target", "y", "--method", "dtc", "--rank", 10, "--stream", "always", "--reservoir", 60)
        plain = self.json("fit", "d.csv", *words, "-m", "a.mcr")
        packed = self.json("fit", "d.csv.gz", *words, "-m", "b.mcr")
        self.assertEqual(plain["n"], 399)
        self.assertEqual(plain["data"]["rows_missing_target"], 1)
        self.assertEqual(plain["log_marginal_likelihood"], packed["log_marginal_likelihood"])
        self.assertEqual(self.predictions("a.mcr"), self.predictions("b.mcr"))
        rows[7] = "," + rows[7].split(",", 1)[1]
        self.write("e.csv", "\n".join([header, *rows]) + "\n")
        self.refused(3, "fit", "e.csv", *words, "-m", "x.mcr", saying=("line 9", "x1"))
        dropped = self.json("fit", "e.csv", *words, "--drop-missing", "-m", "c.mcr")
        self.assertEqual((dropped["n"], dropped["data"]["rows_dropped_missing"]), (398, 1))
        self.assertIsNone(dropped["data"]["duplicate_inputs"])
        # A column of one value is left out, but a row without that value still counts as incomplete.
        rows = [f"{'' if i == 50 else 'k'},{row}" for i, row in enumerate(rows)]
        self.write("f.csv", "\n".join(["place," + header, *rows]) + "\n")
        constant = self.json("fit", "f.csv", *words, "--categorical", "place", "--drop-missing", "-m", "d.mcr")
        self.assertEqual((constant["n"], constant["data"]["rows_dropped_missing"]), (397, 2))

    def test_refusals(self):
        self.data(200)
        self.generate("c.csv", "gp", "-n", 60, "--likelihood", "bernoulli-logit")
        always = ("--stream", "always")
        for words, saying in ((("--method", "pitc", *always), "srm, dtc, fitc, vfe"),
                              (("--method", "subset", *always), "srm, dtc, fitc, vfe"),
                              (always, "--method"),
                              (("--reservoir", 50), "--method"),
                              (("--method", "vfe", "--stream", "never", "--reservoir", 50), "--stream never"),
                              (("--method", "bcm", "--reservoir", 50), "--method bcm"),
                              (("--method", "vfe", *always, "--check-rows", 5), "--check-rows"),
                              (("--method", "vfe", *always, "--test-fraction", "0.2"), "mercer split"),
                              (("--method", "vfe", *always, "--impute", "median"), "--drop-missing"),
                              (("--method", "fitc", *always, "--likelihood", "student-t"), "Gaussian noise"),
                              (("--method", "fitc", *always, "--task", "classification"), "not classes"),
                              (("--method", "vfe", *always, "--reservoir", 20, "--rank", 30), "more than the 20"),
                              (("--method", "vfe", "--stream", "sometimes"), "always")):
            with self.subTest(words=words):
                self.refused(2, "fit", "d.csv", "--target", "y", "-m", "x.mcr", *words, saying=saying)
        self.refused(2, "fit", "-", "--target", "y", "-m", "x.mcr", "--method", "vfe", *always,
                     stdin=(self.folder / "d.csv").read_text(), saying="once only")
        self.refused(3, "fit", "nothere.csv", "--method", "vfe", *always, "-m", "x.mcr", saying="nothere.csv")
        self.refused(2, "fit", "d.csv", "--target", "y", "--method", "vfe", *always, "--reservoir", 1, "-m", "x.mcr",
                     saying="--reservoir")
        # Two values in the target are numbers here, because that is what is learned in passes; it is said.
        words = ("fit", "c.csv", *FIXED, "--method", "fitc", "--rank", 5, *always, "-m", "m.mcr")
        self.assertEqual(self.json(*words)["task"], "regression")
        self.assertIn("looks like classes", self.mercer(*words).stderr)

    def test_what_does_not_fit_is_read_in_passes(self):
        self.generate("d.csv", "friedman", "-n", 120000, "-d", 10, "--seed", 4)
        words = ("d.csv", "--target", "y", "--method", "vfe", "--rank", 30, "--memory", "52M")
        self.refused(4, "fit", *words, *FIXED, "--stream", "never", "-m", "x.mcr", saying="--memory")
        plan = self.json("plan", *words, *FIXED[:2])
        self.assertTrue(plan["streamed"])
        self.assertLess(plan["reservoir_rows"], 120000)
        self.assertLessEqual(plan["peak_bytes"], plan["budget_bytes"])
        report = self.folder / "report"
        done = subprocess.run(watched(report, "fit", *words, *FIXED, "-m", "m.mcr"), cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
        code, peak = read_report(report)
        self.assertEqual(code, 0, done.stderr)
        self.assertIn("in passes instead", done.stderr)
        self.assertLess(peak, 52 << 20)
        self.assertEqual(self.json("info", "m.mcr")["n"], 120000)

    def test_same_bits_on_any_number_of_threads(self):
        self.data(1500)
        words = ("fit", "d.csv", "--target", "y", "--method", "fitc", "--rank", 15, "--restarts", 0, "--stream", "always",
                 "--reservoir", 200)
        for threads in (1, 2, 3):
            self.mercer(*words, "-m", f"{threads}.mcr", "--threads", threads)
        first = (self.folder / "1.mcr").read_bytes()
        self.assertEqual(first, (self.folder / "2.mcr").read_bytes())
        self.assertEqual(first, (self.folder / "3.mcr").read_bytes())

    def test_stopped_anywhere_and_resumed_to_the_same_predictions(self):
        self.data(60000)
        words = ("fit", "d.csv", "--target", "y", "--method", "vfe", "--rank", 60, "--restarts", 0, "--stream", "always",
                 "--reservoir", 400)
        began = time.monotonic()
        self.mercer(*words, "-m", "whole.mcr")
        seconds = time.monotonic() - began
        moments = random.Random("stream")
        stopped = 0
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            process = start(*words, "-m", "m.mcr", "--checkpoint", "c.mck", cwd=self.folder)
            time.sleep(moments.uniform(0.2, 0.9) * seconds)
            process.send_signal(how)
            _, errors = process.communicate(timeout=TIMEOUT)
            self.assertIn(process.returncode, (0, 130, 143, -signal.SIGKILL), errors)
            stopped += process.returncode != 0
            (self.folder / "m.mcr").unlink(missing_ok=True)
        self.assertGreater(stopped, 0)
        resumed = self.json(*words, "-m", "m.mcr", "--checkpoint", "c.mck")
        self.assertGreater(resumed["resumed_evaluations"], 0)
        self.assertEqual(self.predictions("m.mcr"), self.predictions("whole.mcr"))
        # The same options on another file are another run.
        self.generate("d.csv", "friedman", "-n", 60000, "-d", 5, "--seed", 9)
        self.refused(2, *words, "-m", "n.mcr", "--checkpoint", "c.mck", saying="other data")
