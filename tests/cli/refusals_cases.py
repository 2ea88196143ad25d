"""Bad input of every kind: the exit code, one clear line, and nothing left behind."""

import math
import os
import struct
import subprocess
import zlib

from harness import CliCase, fitted, run

GOOD = "a,b,y\n" + "".join(f"{i},{math.cos(i):.3f},{math.sin(i):.3f}\n" for i in range(20))


class UsageTest(CliCase):
    def test_numbers_that_make_no_sense(self):
        self.write("d.csv", GOOD)
        for words, saying in ((("--noise", "0"), "--noise is 0"), (("--noise", "-1"), "--noise is -1"),
                              (("--noise", "nan"), "--noise"), (("--noise", "abc"), "'abc'"),
                              (("--noise", "1e999"), "out of range"),
                              (("--lengthscale", "1,-2"), "--lengthscale"),
                              (("--lengthscale", "1,,2"), "--lengthscale"),
                              (("--lengthscale", "1,2,3"), "lengthscale"),
                              (("--signal-variance", "0"), "--signal-variance"),
                              (("--tolerance", "0"), "--tolerance"),
                              (("--max-iterations", "0"), "--max-iterations"),
                              (("--max-iterations", "1.5"), "whole number"),
                              (("--steps", "0"), "--steps"), (("--restarts", "-1"), "--restarts"),
                              (("--rank", "0"), "--rank"), (("--rank", "5", "--solver", "cholesky"), "--rank"),
                              (("--preconditioner", "nystrom", "--delta", "1"), "--delta"),
                              (("--preconditioner", "regularized", "--solver", "cg"), "fgmres"),
                              (("--subset", "1"), "--subset"),
                              (("--threads", "0"), "--threads"), (("--seed", "-1"), "--seed"),
                              (("--memory", "lots"), "--memory"), (("--memory", "0"), "--memory"),
                              (("--test-fraction", "1"), "--test-fraction")):
            with self.subTest(words=words):
                self.refused(2, "fit", "d.csv", *words, saying=saying)

    def test_unknown_names_come_with_the_list(self):
        self.write("d.csv", GOOD)
        for words, saying in ((("--kernel", "rbff"), ("rbff", "matern52")),
                              (("--kernel", "rbf +"), "kernel"),
                              (("--solver", "magic"), ("magic", "cholesky")),
                              (("--preconditioner", "magic"), ("magic", "none")),
                              (("--operator", "grid"), ("grid", "tiled")),
                              (("--precision", "half"), ("half", "mixed")),
                              (("--mean", "cubic"), ("cubic", "linear")),
                              (("--train", "sgd"), ("adam", "lbfgs")),
                              (("--task", "guess"), ("guess", "regression")),
                              (("--method", "svm"), ("svm", "gp"))):
            with self.subTest(words=words):
                self.refused(2, "fit", "d.csv", *words, saying=saying)
        self.refused(2, "generate", "moons", "-n", 5, saying=("moons", "friedman"))
        self.refused(2, "plan", "d.csv", "--for", "evaluate", saying="predict")
        _, _, test, model = fitted()
        for verb in ("predict", "evaluate"):
            self.refused(2, verb, model, test, "--variance", "guess", saying=("guess", "vecchia"))

    def test_missing_and_superfluous_words(self):
        self.write("d.csv", GOOD)
        self.refused(2, "fit", saying="DATA is missing")
        self.refused(2, "predict", "m.mcr", saying="DATA is missing")
        self.refused(2, "fit", "d.csv", "e.csv", saying="e.csv")
        self.refused(2, "fit", "d.csv", "--noise", saying="--noise")
        self.refused(2, "fit", "d.csv", "--noise", "1", "--noise", "2", saying="--noise")
        self.refused(2, "generate", "gp", saying="-n")
        self.refused(2, "generate", "gp", "-n", "-5", saying="-n")
        self.refused(2, "generate", "friedman", "-n", 5, "-d", 4, saying="5")
        self.refused(2, "generate", "field", "-n", 5, "--kernel", "rbf", saying="--kernel")
        self.refused(2, "split", "d.csv", saying="--train-out")

    def test_outputs_are_checked_before_the_work(self):
        self.write("d.csv", GOOD)
        os.mkdir(self.folder / "sub")
        for path in ("nowhere/m.mcr", "sub", "d.csv", "-", "/dev/null"):
            with self.subTest(path=path):
                self.refused(2, "fit", "d.csv", "-m", path, saying=path)
        self.refused(2, "fit", "d.csv", "--checkpoint", "nowhere/c", saying="nowhere/c")
        self.refused(2, "fit", "d.csv", "-m", "m.mcr", "--checkpoint", "m.mcr", saying="--checkpoint")
        _, _, test, model = fitted()
        self.refused(2, "predict", model, test, "-o", "nowhere/p.csv", saying="nowhere/p.csv")
        self.refused(2, "predict", model, test, "-o", model, saying="being read")
        self.refused(2, "solve", "d.csv", "-o", "-", "--json", saying="standard output")

    def test_columns_named_wrongly(self):
        self.write("d.csv", GOOD)
        self.refused(3, "fit", "d.csv", "--target", "z", saying=("'z'", "'a'"))
        self.refused(3, "fit", "d.csv", "--inputs", "a,zz", saying="'zz'")
        self.refused(2, "fit", "d.csv", "--target", "y", "--inputs", "a,y", saying="'y'")


class DataTest(CliCase):
    def test_the_table_of_bad_files(self):
        cases = {
            "empty": ("", ""),
            "only blank lines": ("\n\n", ""),
            "header only": ("a,y\n", ""),
            "one row": ("a,y\n1,2\n", ""),
            "ragged row": ("a,b,y\n1,2,3\n4,5\n", "line 3"),
            "too many fields": ("a,b,y\n1,2,3\n4,5,6,7\n", "line 3"),
            "text in a number column": ("a,b,y\n1,2,3\n4,tall,6\n", ("line 3", "'b'", "--categorical")),
            "missing input": ("a,b,y\n1,2,3\n,5,6\n", ("line 3", "'a'", "--drop-missing")),
            "NaN input": ("a,b,y\n1,2,3\nnan,5,6\n", ("line 3", "'a'")),
            "infinite input": ("a,b,y\n1,2,3\ninf,5,6\n", ("line 3", "'a'")),
            "infinite target": ("a,b,y\n1,2,3\n1,5,1e999\n", ("line 3", "'y'")),
            "all targets missing": ("a,y\n1,\n2,NA\n", "target"),
            "constant target": ("a,y\n1,5\n2,5\n3,5\n", "target"),
            "all rows the same": ("a,b,y\n1,2,3\n1,2,4\n1,2,5\n", "same inputs"),
            "one column": ("y\n1\n2\n", "column"),
            "repeated column": ("a,a,y\n1,2,3\n4,5,6\n", "'a'"),
            "open quote": ('a,y\n"1,2\n3,4\n', ""),
            "binary": (bytes(range(256)) * 20, ""),
        }
        for name, (text, saying) in cases.items():
            with self.subTest(name):
                self.write("d.csv", text)
                self.refused(3, "fit", "d.csv", saying=saying)
                self.refused(3, "solve", "d.csv", "--json", saying=saying)

    def test_files_that_cannot_be_read(self):
        self.refused(3, "fit", "nowhere.csv", saying="nowhere.csv")
        os.mkdir(self.folder / "sub")
        self.refused(3, "fit", "sub", "-m", "m.mcr", saying="sub")
        self.write("z.csv.gz", b"\x1f\x8b\x08\x00 this is no gzip")
        self.refused(3, "fit", "z.csv.gz")
        self.refused(3, "split", "nowhere.csv", "--train-out", "a.csv", "--test-out", "b.csv",
                     saying="nowhere.csv")

    def test_drop_missing_leaves_rows_out(self):
        self.write("d.csv", GOOD + ",1,2\n")
        record = self.json("fit", "d.csv", "--drop-missing", "--train", "none")
        self.assertEqual((record["n"], record["data"]["rows_dropped_missing"]), (20, 1))

    def test_ten_thousand_columns(self):
        header = ",".join([f"c{j}" for j in range(10000)] + ["y"])
        rows = [",".join([str((i * (j % 5 + 1) + j) % 11) for j in range(10000)] + [str(i * i)]) for i in range(6)]
        self.write("wide.csv", "\n".join([header, *rows]) + "\n")
        record = self.json("fit", "wide.csv", "--train", "none", "--kernel", "rbf:iso")
        self.assertEqual(record["n"], 6)
        self.assertEqual(record["d"], 10000)

    def test_repeated_rows_are_counted_and_fine(self):
        self.write("d.csv", GOOD + "1,0.5,0.25\n1,0.5,0.75\n")
        record = self.json("fit", "d.csv", "--train", "none")
        self.assertEqual(record["data"]["duplicate_inputs"], 1)

    def test_predict_with_the_wrong_columns(self):
        _, _, _, model = fitted()
        self.write("d.csv", GOOD)
        self.refused(3, "predict", model, "d.csv", saying="'x1'")
        header = ",".join(f"x{c}" for c in range(1, 7))
        self.write("e.csv", f"{header}\n1,2,3,4,5,x\n")
        self.refused(3, "predict", model, "e.csv", "-o", "p.csv", saying=("line 2", "'x6'"))
        self.write("f.csv", f"{header}\n1,2,3,4,5,\n")
        self.refused(3, "predict", model, "f.csv", "-o", "p.csv", saying=("line 2", "'x6'"))
        self.refused(3, "predict", model, "nowhere.csv", saying="nowhere.csv")
        self.write("g.csv", f"{header}\n1,2,3,4,5,6\n")
        self.refused(3, "evaluate", model, "g.csv", saying="'y'")

    def test_a_late_error_leaves_no_file(self):
        _, _, test, model = fitted()
        lines = test.read_text().splitlines()
        bad = lines[-1].replace(lines[-1].split(",")[0], "oops", 1)
        self.write("late.csv", "\n".join(lines + lines[1:] * 60 + [bad]) + "\n")
        self.refused(3, "predict", model, "late.csv", "-o", "p.csv", saying="oops")


class ResourceTest(CliCase):
    def test_too_little_memory_is_said_before_starting(self):
        self.write("d.csv", GOOD)
        self.refused(4, "fit", "d.csv", "--memory", "1M", saying="--memory")
        self.refused(4, "solve", "d.csv", "--memory", "1M", saying="--memory")
        self.refused(4, "plan", "d.csv", "--memory", "1M", saying="--memory")
        self.refused(4, "generate", "gp", "-n", 2000, "--memory", "1M", saying="fit")
        _, _, test, model = fitted()
        self.refused(4, "predict", model, test, "--memory", "1M", saying="--memory")

    def test_a_missed_tolerance_writes_no_model(self):
        self.generate("d.csv", "gp", "-n", 200)
        words = ("fit", "d.csv", "--train", "none", "--solver", "cg", "--preconditioner", "none",
                 "--noise", "1e-4", "--tolerance", "1e-9", "--max-iterations", "3", "-m", "m.mcr")
        record = self.json(*words, code=5)
        self.assertIsNone(record["model"])
        self.assertEqual(record["stop"], "iteration_limit")
        self.assertGreater(record["certificate"]["relative_residual"], 1e-9)
        self.assertFalse((self.folder / "m.mcr").exists())
        self.assertIn("--keep-unconverged", self.mercer(*words, code=5).stderr)
        self.assertEqual(self.json(*words, "--keep-unconverged", code=5)["model"], "m.mcr")
        self.json("info", "m.mcr")

    def test_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        _, _, test, model = fitted()
        with open("/dev/full", "wb") as full:
            for words in (("predict", model, test), ("info", model), ("--help",),
                          ("generate", "field", "-n", 100), ("evaluate", model, test, "--json")):
                with self.subTest(words=words):
                    done = run(*words, cwd=self.folder, stdout=full)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn("No space left", done.stderr)
        self.refused(1, "predict", model, test, "-o", "/dev/full", saying="No space left")

    def test_a_full_disk_leaves_no_model(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk],
                               capture_output=True, check=False)
        if mount.returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=False)
        self.generate("d.csv", "gp", "-n", 1000)
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        done = self.mercer("fit", "d.csv", "--train", "none", "-m", disk / "m.mcr", code=1,
                           env=os.environ | {"TMPDIR": str(elsewhere)})
        self.assertIn("no space is left on the disk; the model was written to", done.stderr)
        self.assertEqual(os.listdir(disk), [])
        self.assertEqual(len(os.listdir(elsewhere)), 1)

    def test_one_file_for_two_outputs(self):
        self.generate("d.csv", "gp", "-n", 40)
        self.refused(2, "split", "d.csv", "--train-out", "a.csv", "--test-out", "./a.csv", saying="same file")
        self.refused(2, "fit", "d.csv", "-m", "m.mcr", "--checkpoint", "./m.mcr", saying="same file")

    def test_a_name_that_is_too_long(self):
        self.generate("d.csv", "gp", "-n", 40)
        for words in (("info", 300 * "n"), ("fit", "d.csv", "--train", "none", "-m", 300 * "n")):
            done = self.mercer(*words, code=None)
            self.assertIn("name too long", done.stderr.lower())
            self.assertNotIn("internal error", done.stderr)

    def test_a_reader_that_goes_away(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = run("generate", "field", "-n", 100000, stdout=writing)
        os.close(writing)
        self.assertEqual(done.returncode, 141)
        self.assertNotIn("closed", done.stderr)


class ModelFileTest(CliCase):
    def everywhere(self, saying=()):
        _, _, test, _ = fitted()
        self.refused(6, "predict", "bad.mcr", test, "-o", "p.csv", saying=saying)
        self.refused(6, "evaluate", "bad.mcr", test, saying=saying)
        self.refused(6, "info", "bad.mcr", "--json", saying=saying)

    def test_missing_empty_or_something_else(self):
        self.everywhere("bad.mcr")
        for content in (b"", b"MERCER\r\n", GOOD.encode(), os.urandom(4096)):
            self.write("bad.mcr", content)
            self.everywhere("bad.mcr")

    def test_truncated(self):
        good = fitted()[3].read_bytes()
        for size in (1, 20, 40, len(good) // 2, len(good) - 8, len(good) - 1):
            self.write("bad.mcr", good[:size])
            self.refused(6, "info", "bad.mcr", saying="bad.mcr")
        self.write("bad.mcr", good + b"\0")
        self.refused(6, "info", "bad.mcr", saying="bad.mcr")

    def test_one_bit_flipped(self):
        good = fitted()[3].read_bytes()
        places = list(range(0, 33)) + list(range(33, len(good), max(1, len(good) // 60)))
        for place in places:
            bad = bytearray(good)
            bad[place] ^= 1 << (place % 8)
            self.write("bad.mcr", bytes(bad))
            self.refused(6, "info", "bad.mcr", saying="bad.mcr")

    def test_newer_format(self):
        bad = bytearray(fitted()[3].read_bytes())
        header = struct.unpack_from("<Q", bad, 24)[0]
        struct.pack_into("<I", bad, 8, 8)
        struct.pack_into("<I", bad, 12, zlib.crc32(bytes(bad[16:32 + header])))
        self.write("bad.mcr", bytes(bad))
        version = self.mercer("--version").stdout.split()[1]
        self.everywhere(("version 8", "newer", version, "version 7"))
        struct.pack_into("<I", bad, 8, 3)  # of another layout, which this has not
        self.write("bad.mcr", bytes(bad))
        self.everywhere("damaged")
