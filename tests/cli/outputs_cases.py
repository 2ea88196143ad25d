"""What predict and evaluate write, and the files that mercer replaces."""

import os
import stat

from harness import CliCase


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
