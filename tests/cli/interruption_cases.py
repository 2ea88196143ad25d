"""Four ways to be interrupted, for every likelihood and trainer: Ctrl-C, SIGTERM, kill -9, a damaged model.

Each pair of likelihood and trainer is stopped one way after the other at random moments, resumed each time from its
checkpoint, and must end with the very bytes of the run that was left alone: hyperparameters, weights and record.
MERCER_INTERRUPTIONS=20 does that with twenty random moments for every pair; without it a few pairs are tried once.
"""

import math
import os
import random
import signal
import subprocess
import time

from harness import TIMEOUT, CliCase, start

ROUNDS = int(os.environ.get("MERCER_INTERRUPTIONS", "0"))
# SIGTERM ends a run within three seconds on a machine of its own; here many tests share one.
PROMPT = 10

# Option words and target of each likelihood; which trainers it has is asked of the program.
LIKELIHOODS = {
    "gaussian": (("--task", "regression"), lambda v, r: f"{v + r.gauss(0, 0.2):.6f}"),
    "logit": (("--likelihood", "bernoulli-logit"), lambda v, r: "yes" if v + r.gauss(0, 0.3) > 0 else "no"),
    "classes": (("--task", "classification"), lambda v, r: "abc"[min(2, max(0, int(1.5 + v + r.gauss(0, 0.2))))]),
    "softmax": (("--likelihood", "softmax"), lambda v, r: "abc"[min(2, max(0, int(1.5 + v + r.gauss(0, 0.2))))]),
    "poisson": (("--likelihood", "poisson"), lambda v, r: str(int(math.exp(v) + r.random() * 2))),
    "student-t": (("--likelihood", "student-t"), lambda v, r: f"{v + r.gauss(0, 0.1) + (5 if r.random() < 0.03 else 0):.6f}"),
}
TRAINERS = ("exact", "lbfgs", "newton", "adam", "adagrad", "vecchia")
QUICK = (("gaussian", "lbfgs"), ("gaussian", "adam"), ("gaussian", "vecchia"), ("logit", "newton"), ("classes", "exact"),
         ("softmax", "adagrad"), ("poisson", "adam"), ("student-t", "exact"))


class EveryLikelihoodTest(CliCase):
    def table(self, likelihood, rows=120):
        """Rows of two inputs and a target that this likelihood can observe."""
        random_numbers = random.Random(1)
        lines = ["a,b,y"]
        for _ in range(rows):
            a, b = random_numbers.random(), random_numbers.random()
            lines.append(f"{a:.6f},{b:.6f},{LIKELIHOODS[likelihood][1](math.sin(6 * a) + b - 0.5, random_numbers)}")
        self.write("d.csv", "\n".join(lines) + "\n")

    def words(self, likelihood, trainer):
        return ("fit", "d.csv", *LIKELIHOODS[likelihood][0], "--train", trainer, "--steps", 12, "--restarts", 1,
                "--keep-unconverged", "--seed", 5)

    def stop(self, words, how, delay):
        """Starts a run and stops it after `delay` seconds; checks what every stopped run promises."""
        process = start(*words, cwd=self.folder)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
        began = time.monotonic()
        out, errors = process.communicate(timeout=TIMEOUT)
        code = process.returncode
        if code == -how and errors == "":  # before the program had said anything
            for path in self.folder.glob("*.tmp-*"):
                path.unlink()
            return code
        if how == signal.SIGKILL:
            self.assertIn(code, (0, 5, -signal.SIGKILL), errors)
        elif how == signal.SIGTERM:
            self.assertIn(code, (0, 5, 143), errors)
            self.assertLess(time.monotonic() - began, PROMPT)
        else:
            self.assertIn(code, (0, 5, 130), errors)
            kept = (self.folder / "m.mcr").exists()
            if "the model of the values so far is made" in errors:
                self.assertTrue(kept, errors)
            if code == 130 and not kept:
                self.assertNotIn("model is", errors)
                self.assertEqual(out, "")
        if how != signal.SIGKILL:  # nobody can clear up after that one
            self.assertEqual([name for name in os.listdir(self.folder) if ".tmp-" in name], [], errors)
        for path in self.folder.glob("*.tmp-*"):
            path.unlink()
        if code in (130, 143):
            self.assertIn("interrupted", errors)
        return code

    def stopped_and_resumed(self, likelihood, trainer, rounds):
        self.table(likelihood)
        words = self.words(likelihood, trainer)
        began = time.monotonic()
        done = self.mercer(*words, "-m", "whole.mcr", code=None)
        seconds = time.monotonic() - began
        if done.returncode == 2:
            self.assertIn("train", done.stderr)
            return 0
        self.assertIn(done.returncode, (0, 5), done.stderr)
        moments = random.Random(f"{likelihood} {trainer}")
        stopped = 0
        for _ in range(rounds):
            for name in ("c.mck", "m.mcr"):
                (self.folder / name).unlink(missing_ok=True)
            for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
                (self.folder / "m.mcr").unlink(missing_ok=True)
                code = self.stop((*words, "-m", "m.mcr", "--checkpoint", "c.mck"), how,
                                 moments.uniform(0.02, 0.9 * seconds))
                stopped += code not in (0, 5)
            self.mercer(*words, "-m", "m.mcr", "--checkpoint", "c.mck", code=done.returncode)
            self.assertEqual((self.folder / "m.mcr").read_bytes(), (self.folder / "whole.mcr").read_bytes(),
                             f"{likelihood} {trainer}")
        return stopped

    def test_stopped_anywhere_and_resumed_to_the_same_bytes(self):
        pairs = [(name, trainer) for name in LIKELIHOODS for trainer in TRAINERS] if ROUNDS else QUICK
        stopped = 0
        for likelihood, trainer in pairs:
            with self.subTest(likelihood=likelihood, trainer=trainer):
                stopped += self.stopped_and_resumed(likelihood, trainer, ROUNDS or 1)
        self.assertGreater(stopped, len(pairs) / 2, "hardly any run was stopped: the moments are wrong")

    def test_a_damaged_model_is_refused(self):
        places = random.Random(2)
        for likelihood in LIKELIHOODS:
            with self.subTest(likelihood=likelihood):
                self.table(likelihood, rows=40)
                self.mercer("fit", "d.csv", *LIKELIHOODS[likelihood][0], "--train", "none", "--keep-unconverged",
                            "-m", "m.mcr", code=None)
                whole = (self.folder / "m.mcr").read_bytes()
                damaged = [whole[:places.randrange(len(whole))] for _ in range(2 + ROUNDS)]
                for _ in range(4 + ROUNDS):
                    at = places.randrange(len(whole))
                    damaged.append(whole[:at] + bytes([whole[at] ^ (1 << places.randrange(8))]) + whole[at + 1:])
                for data in damaged:
                    self.write("bad.mcr", data)
                    self.mercer("predict", "bad.mcr", "d.csv", code=6)


class PromptTest(CliCase):
    """Runs that would take minutes, stopped in the middle of what they compute."""

    def ends(self, words, how, code, after=0.0, saying=()):
        process = start(*words, cwd=self.folder)
        time.sleep(after)
        self.assertIsNone(process.poll(), "it ended before it could be stopped")
        process.send_signal(how)
        began = time.monotonic()
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, code, errors)
        self.assertLess(time.monotonic() - began, PROMPT)
        for word in saying:
            self.assertIn(word, errors)
        self.assertEqual([name for name in os.listdir(self.folder) if ".tmp-" in name], [])
        return errors

    def test_sigterm_and_sighup_end_every_long_verb(self):
        self.generate("d.csv", "friedman", "-n", 9000, "-d", 5, "--seed", 1)
        exact = ("--train", "none", "--noise", 0.1)
        for words in (("fit", "d.csv", "-m", "m.mcr", "--checkpoint", "c.mck"),
                      ("fit", "d.csv", "-m", "m.mcr", "--solver", "cholesky", *exact),
                      ("solve", "d.csv", "--noise", "1e-6", "--solver", "cg", "--preconditioner", "none"),
                      ("compare", "d.csv"),
                      ("generate", "gp", "-n", 12000, "--draw", "exact", "-o", "g.csv")):
            with self.subTest(words=words):
                self.ends(words, signal.SIGTERM, 143, after=2, saying=("SIGTERM",) if words[0] != "compare" else ())
        self.ends(("fit", "d.csv", "-m", "m.mcr"), signal.SIGHUP, 129, after=2, saying=("SIGHUP",))
        self.assertFalse((self.folder / "m.mcr").exists())

    def test_ctrl_c_that_the_caller_ignores_ends_nothing(self):
        self.generate("d.csv", "friedman", "-n", 1500, "-d", 5, "--seed", 1)
        program = os.environ["MERCER_PROGRAM"]
        process = subprocess.Popen(["sh", "-c", f"trap '' INT; exec '{program}' fit d.csv -m m.mcr --checkpoint c.mck"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for(process, "c.mck")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, errors)
        self.assertNotIn("interrupted", errors)
        self.assertTrue((self.folder / "m.mcr").exists())

    def test_the_first_ctrl_c_says_what_follows_and_the_second_leaves(self):
        self.generate("d.csv", "friedman", "-n", 6000, "-d", 5, "--seed", 1)
        process = start("fit", "d.csv", "--train", "adam", "--steps", 100000, "-m", "m.mcr", "--noise", "1e-6",
                        "--checkpoint", "c.mck", cwd=self.folder)
        self.wait_for(process, "c.mck")  # a step has been made
        process.send_signal(signal.SIGINT)
        lines = []
        for line in process.stderr:  # said at once, while the run goes on
            lines.append(line)
            if "interrupted" in line:
                break
        self.assertIn("learning stops here", lines[-1])
        self.assertIn("about", lines[-1])
        self.assertIn("Ctrl-C again leaves", lines[-1])
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - began, PROMPT)
        self.assertEqual(sorted(os.listdir(self.folder)), ["c.mck", "d.csv"])

    def test_before_anything_is_learned_no_model_is_promised(self):
        self.generate("d.csv", "friedman", "-n", 9000, "-d", 5, "--seed", 1)
        errors = self.ends(("fit", "d.csv", "--train", "adam", "-m", "m.mcr", "--noise", "1e-6"), signal.SIGINT, 130,
                           after=1)
        self.assertNotIn("model", errors.splitlines()[-1])
        self.assertFalse((self.folder / "m.mcr").exists())
