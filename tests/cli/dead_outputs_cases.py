"""Outputs that cannot be written: a dead log costs no run, a full disk no model, a closed pipe no words."""

import os
import resource
import subprocess
import tempfile

from harness import TIMEOUT, CliCase, fitted


class DeadOutputsTest(CliCase):
    def shell(self, command, code):
        """The command in a shell, where $M is the program."""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT,
                              env={**os.environ, "M": os.environ["MERCER_PROGRAM"]}, check=False)
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}\n{done.stderr}")
        return done

    def test_standard_error_that_cannot_be_written(self):
        self.generate("d.csv", "friedman", "-n", 120, "-d", 5)
        fit = '"$M" fit d.csv --restarts 0 --steps 5 --seed 3'
        self.shell(f"{fit} -m whole.mcr >/dev/null 2>/dev/null", 0)
        whole = (self.folder / "whole.mcr").read_bytes()
        for name, dead in (("full", "2>/dev/full"), ("closed", "2>&-"), ("all", "0<&- 2>&-"),
                           ("reader", "2> >(exec true)")):
            with self.subTest(dead=dead):
                self.shell(f"{fit} -m {name}.mcr >/dev/null {dead}", 0)
                self.assertEqual((self.folder / f"{name}.mcr").read_bytes(), whole)
        self.shell(f"set -o pipefail; {fit} -m both.mcr 2>&1 | head -1", 141)
        self.assertEqual((self.folder / "both.mcr").read_bytes(), whole)
        # A refusal keeps its exit code although nobody can read why.
        self.shell('"$M" fit nothing.csv 2>/dev/full', 3)
        self.shell('"$M" 2>&-', 2)

    def test_standard_output_that_is_closed_or_full(self):
        _, train, test, model = fitted()
        predict = f'"$M" predict {model} {test}'
        done = self.shell(f"set -o pipefail; for i in $(seq 40); do cat {test}; done | grep -v y > many.csv; "
                          f"head -1 {test} | cat - many.csv > m.csv; "
                          f'"$M" predict {model} m.csv --quiet | head -2', 141)
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(done.stdout.splitlines()), 2)
        for verb in (predict, '"$M" --help', f'"$M" info {model}', f'"$M" predict {model} {test} --json'):
            with self.subTest(verb=verb):
                self.assertIn("standard output", self.shell(f"{verb} >/dev/full", 1).stderr)
                self.assertIn("standard output", self.shell(f"{verb} >&-", 1).stderr)
        # A file that is opened must not take the place of a closed standard output.
        self.shell(f'"$M" predict {model} {test} -o p.csv --json >&-', 1)
        self.assertTrue((self.folder / "p.csv").read_text().startswith("mean,"))

    def limited(self, size, *words, **environment):
        """The program when no file may grow beyond `size` bytes (ulimit -f)."""
        return subprocess.run([os.environ["MERCER_PROGRAM"], *map(str, words)], cwd=self.folder, text=True,
                              capture_output=True, timeout=TIMEOUT, env={**os.environ, **environment}, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))

    def test_a_limit_on_the_size_of_files(self):
        self.generate("d.csv", "friedman", "-n", 200, "-d", 5)
        (self.folder / "tmp").mkdir()
        done = self.limited(4096, "fit", "d.csv", "--train", "none", "-m", "m.mcr", TMPDIR=str(self.folder / "tmp"),
                            HOME=str(self.folder))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ulimit -f", done.stderr.splitlines()[-1])
        done = self.limited(4096, "generate", "friedman", "-n", 1000, "-o", "g.csv")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ulimit -f", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["d.csv", "tmp"])
        self.assertEqual(os.listdir(self.folder / "tmp"), [])

    def test_a_checkpoint_that_cannot_be_written_is_a_warning(self):
        self.generate("d.csv", "friedman", "-n", 200, "-d", 5)
        words = ("fit", "d.csv", "--steps", 8, "--restarts", 0, "--seed", 3)
        self.mercer(*words, "-m", "whole.mcr")
        # A checkpoint holds more than two hundred bytes from its first evaluation on.
        done = self.limited(200, *words, "-m", "/dev/null/m.mcr", "--checkpoint", "c.mck")
        self.assertEqual(done.returncode, 2, done.stderr)  # /dev/null is no folder: said before any work
        done = self.limited(200, *words, "-m", "m.mcr", "--checkpoint", "c.mck", TMPDIR=str(self.folder),
                            HOME=str(self.folder))
        self.assertEqual(done.returncode, 1, done.stderr)
        warnings = [line for line in done.stderr.splitlines() if "goes on" in line]
        self.assertEqual(len(warnings), 1, done.stderr)
        self.assertIn("c.mck", warnings[0])
        self.assertIn("m.mcr", done.stderr.splitlines()[-1])  # it came to its end, where the model had no room
        self.assertEqual(sorted(os.listdir(self.folder)), ["d.csv", "whole.mcr"])

    def test_a_model_whose_folder_is_full_goes_elsewhere(self):
        self.generate("d.csv", "friedman", "-n", 200, "-d", 5)
        words = ("fit", "d.csv", "--train", "none", "--noise", 0.1)
        self.mercer(*words, "-m", "whole.mcr")
        small, other = self.folder / "small", self.folder / "other"
        small.mkdir()
        other.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(small)], capture_output=True,
                                 check=False).returncode == 0
        if not mounted:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", str(small)], check=False)
        done = self.mercer(*words, "-m", "small/m.mcr", code=1, env={**os.environ, "TMPDIR": str(other)})
        self.assertIn("no space", done.stderr)
        self.assertIn(str(other / "m.mcr"), done.stderr)
        self.assertIn(f"Written      {other / 'm.mcr'}", done.stdout)
        self.assertEqual((other / "m.mcr").read_bytes(), (self.folder / "whole.mcr").read_bytes())
        self.assertEqual(os.listdir(small), [])
        # The next one does not overwrite it.
        again = self.mercer(*words, "-m", "small/m.mcr", code=1, env={**os.environ, "TMPDIR": str(other)})
        self.assertIn("m-1.mcr", again.stderr)

    def test_a_model_whose_folder_has_gone_goes_elsewhere(self):
        self.generate("d.csv", "friedman", "-n", 1500, "-d", 5)
        (self.folder / "gone").mkdir()
        other = tempfile.mkdtemp(dir=self.folder)
        process = subprocess.Popen([os.environ["MERCER_PROGRAM"], "fit", "d.csv", "--restarts", "0", "-m", "gone/m.mcr",
                                    "--checkpoint", "c.mck"], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": other})
        self.wait_for(process, "c.mck")
        (self.folder / "gone").rmdir()
        out, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("gone/m.mcr", errors)
        self.assertIn(os.path.join(other, "m.mcr"), out)
        self.assertEqual(self.json("info", os.path.join(other, "m.mcr"))["n"], 1500)
