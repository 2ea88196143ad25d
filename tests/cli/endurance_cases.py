"""Same bits on any number of threads, after Ctrl-C, and after kill -9."""

import os
import pty
import signal
import subprocess
import threading
import time

from harness import TIMEOUT, CliCase, run, start


class ThreadsTest(CliCase):
    def fit_and_predict(self, threads, *method):
        model, out = f"m{threads}.mcr", f"p{threads}.csv"
        self.mercer("fit", "d.csv", *method, "--threads", threads, "-m", model, "--seed", 7)
        self.mercer("predict", model, "t.csv", "-o", out, "--threads", threads)
        return (self.folder / model).read_bytes(), (self.folder / out).read_bytes()

    def same_on_one_and_two_threads(self, *method):
        self.generate("d.csv", "friedman", "-n", 700, "-d", 5, "--seed", 1)
        self.generate("t.csv", "friedman", "-n", 100, "-d", 5, "--seed", 2)
        one = self.fit_and_predict(1, *method)
        two = self.fit_and_predict(2, *method)
        self.assertEqual(one[0], two[0], "model files differ")
        self.assertEqual(one[1], two[1], "predictions differ")
        self.assertEqual(self.fit_and_predict(2, *method), two, "a second run differs")

    def test_learning_and_cholesky(self):
        self.same_on_one_and_two_threads("--restarts", 1)

    def test_conjugate_gradients_in_mixed_precision(self):
        self.same_on_one_and_two_threads("--train", "none", "--solver", "cg", "--precision", "mixed",
                                         "--operator", "tiled", "--preconditioner", "none")
        self.same_on_one_and_two_threads("--train", "none", "--solver", "cg", "--precision", "mixed",
                                         "--operator", "tiled", "--preconditioner",
                                         "pivoted-cholesky")

    def test_choices_left_to_the_plan(self):
        self.same_on_one_and_two_threads("--train", "none", "--solver", "cg", "--noise", "1e-4")
        self.same_on_one_and_two_threads("--train", "none", "--operator", "tiled", "--precision", "mixed")

    def test_another_seed_is_another_run(self):
        self.generate("d.csv", "friedman", "-n", 300, "-d", 5)
        a = self.json("fit", "d.csv", "--test-fraction", "0.2", "--train", "none", "--seed", 1)
        b = self.json("fit", "d.csv", "--test-fraction", "0.2", "--train", "none", "--seed", 2)
        self.assertNotEqual(a["evaluation"]["rmse"], b["evaluation"]["rmse"])


class InterruptionTest(CliCase):
    def long_fit(self, *words):
        return ("fit", "d.csv", "--restarts", 6, "--steps", 200, "-m", "m.mcr", *words)

    def test_ctrl_c_in_an_exact_search_keeps_what_was_learned(self):
        self.generate("d.csv", "friedman", "-n", 3400, "-d", 8)
        process = start(*self.long_fit("--checkpoint", "c.mcc"), cwd=self.folder)
        self.wait_for(process, "c.mcc")
        time.sleep(1.5)  # the first is there after one evaluation; some steps more
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("the model of the values so far is made", errors)
        self.assertIn("Written      m.mcr", out)
        self.assertEqual(sorted(os.listdir(self.folder)), ["c.mcc", "d.csv", "m.mcr"])
        self.assertEqual(self.json("info", "m.mcr")["n"], 3400)

    def test_ctrl_c_while_waiting_for_data(self):
        process = start("fit", "-", "-m", "m.mcr", cwd=self.folder, stdin=subprocess.PIPE)
        process.stdin.write("a,y\n1,2\n")
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130, errors)
        self.assertEqual(os.listdir(self.folder), [])

    def stops_at_once(self, words, files, delay):
        """SIGINT after `delay` seconds ends the run within two more, with 130 and no other files."""
        process = start(*words, cwd=self.folder)
        time.sleep(delay)
        self.assertIsNone(process.poll(), "it ended before it could be interrupted")
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted", errors)
        # Far less than the run had left, and enough for a busy machine.
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(sorted(os.listdir(self.folder)), files)

    def test_ctrl_c_while_generating(self):
        self.stops_at_once(("generate", "friedman", "-n", 20000000, "-o", "g.csv"), [], 1)
        self.stops_at_once(("generate", "gp", "-n", 12000, "--draw", "exact", "-o", "g.csv"), [], 3)
        self.stops_at_once(("generate", "gp", "-n", 1000000, "-o", "g.csv"), [], 4)

    def test_ctrl_c_while_reading_a_file(self):
        os.mkfifo(self.folder / "d.csv")  # a file without an end

        def feed():
            try:
                with open(self.folder / "d.csv", "w", encoding="ascii") as file:
                    file.write("a,b,y\n")
                    while True:
                        file.write("1.25,2.5,3.75\n" * 1000)
            except BrokenPipeError:
                pass
        for words in (("fit", "d.csv", "-m", "m.mcr"),
                      ("split", "d.csv", "--train-out", "a.csv", "--test-out", "b.csv")):
            feeder = threading.Thread(target=feed, daemon=True)
            feeder.start()
            self.stops_at_once(words, ["d.csv"], 0.5)
            feeder.join(timeout=TIMEOUT)

    def test_killed_and_resumed_is_the_same_to_the_last_bit(self):
        self.generate("d.csv", "friedman", "-n", 2200, "-d", 8)
        words = ("fit", "d.csv", "--restarts", 2, "-m")
        self.mercer(*words, "whole.mcr")
        resumed = (*words, "resumed.mcr", "--checkpoint", "c.mcc")
        process = start(*resumed, cwd=self.folder)
        self.wait_for(process, "c.mcc")
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "it ended before it could be killed")
        process.kill()
        process.communicate(timeout=TIMEOUT)
        self.assertFalse((self.folder / "resumed.mcr").exists())
        record = self.json(*resumed)
        self.assertGreater(record["resumed_evaluations"], 0)
        self.assertEqual((self.folder / "whole.mcr").read_bytes(),
                         (self.folder / "resumed.mcr").read_bytes())

    def test_a_checkpoint_of_another_run_is_refused(self):
        self.generate("d.csv", "friedman", "-n", 150, "-d", 5)
        self.mercer("fit", "d.csv", "--restarts", 0, "-m", "m.mcr", "--checkpoint", "c.mcc")
        if not (self.folder / "c.mcc").exists():
            self.skipTest("the checkpoint is removed once the model is written")
        done = run("fit", "d.csv", "--restarts", 0, "-m", "n.mcr", "--checkpoint", "c.mcc",
                   "--kernel", "rbf", cwd=self.folder)
        self.assertIn(done.returncode, (2, 6), done.stderr)
        self.assertFalse((self.folder / "n.mcr").exists())

    def test_a_damaged_checkpoint_is_refused(self):
        self.generate("d.csv", "friedman", "-n", 150, "-d", 5)
        self.write("c.mcc", "this is no checkpoint")
        self.refused(6, "fit", "d.csv", "--restarts", 0, "-m", "m.mcr", "--checkpoint", "c.mcc",
                     saying="c.mcc")
        self.assertEqual((self.folder / "c.mcc").read_text(), "this is no checkpoint")


class TerminalTest(CliCase):
    def on_a_terminal(self, **environment):
        """What a terminal gets on standard error while a fit runs."""
        self.generate("d.csv", "friedman", "-n", 400, "-d", 5)
        master, slave = pty.openpty()
        env = {**os.environ, "TERM": "xterm", **environment}
        process = subprocess.Popen([os.environ["MERCER_PROGRAM"], "fit", "d.csv"], env=env,
                                   cwd=self.folder, stdout=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end was closed
                break
            if not piece:
                break
            text += piece
        os.close(master)
        self.assertEqual(process.wait(timeout=TIMEOUT), 0)
        return text.decode()

    def test_a_bar_that_is_taken_away_at_the_end(self):
        text = self.on_a_terminal(NO_COLOR="")
        self.assertIn("[....", text)
        self.assertIn("\033[36m", text)
        self.assertTrue(text.endswith("\r\033[K"), repr(text[-80:]))

    def test_no_color_is_obeyed(self):
        text = self.on_a_terminal(NO_COLOR="1")
        self.assertIn("[....", text)
        self.assertNotIn("\033[36m", text)
