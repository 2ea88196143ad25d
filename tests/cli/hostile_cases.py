"""Hostile input: some hundred small runs, each of which must end well.

Well means: a documented exit code and never 1 (internal error); on failure one last line that names the verb and is a sentence;
no control bytes, no names of the libraries underneath; on success only finite numbers. What is tried: every option with
values that make no sense, kernels that are no kernels, tables that are no tables, and extreme numbers.
"""

import itertools
import math
import os
import re
import subprocess
import tempfile

from harness import CliCase, read_report, run, watched

FINE = {0, 2, 3, 4, 5, 6}
FOREIGN = ("exception", "std::", "Eigen", "CLI11", "CLI::", "nlohmann", "fmt::", "terminate", "Assertion", "bad_alloc",
           "At Most", "stoi", "stod", "invalid_argument", "basic_string", "vector::")
# In MiB: no case has more than some hundred rows.
MOST_MEMORY = 400


class HostileCase(CliCase):
    def ends_well(self, *words, stdin=None, codes=FINE):
        """Runs it and returns the exit code."""
        code, out, err, peak = self.measured(words, stdin)
        told = f"mercer {words}\nexit {code}\n{out[-500:]}\n{err[-1500:]}"
        self.assertIn(code, codes, told)
        self.assertLess(peak, MOST_MEMORY, told)
        bad = [c for c in err + out if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
        self.assertEqual(bad, [], told)
        for name in FOREIGN:
            self.assertNotIn(name, err, told)
        if code != 0:
            lines = err.strip().splitlines()
            self.assertTrue(lines, told)
            self.assertTrue(lines[-1].startswith("mercer"), told)
            self.assertGreater(len(lines[-1].split()), 4, told)
        else:
            self.assertIsNone(re.search(r"(?<![a-z_-])(nan|inf|-inf)(?![a-z])", out, re.I), told)
        return code

    def measured(self, words, stdin):
        """Exit code, both outputs and the peak memory in MiB of one run."""
        with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            text.write(stdin or b"")
            text.seek(0)
            report = self.folder / "report"
            subprocess.run(watched(report, *words), cwd=self.folder, stdin=text, stdout=out, stderr=err, check=True)
            code, peak = read_report(report)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        return code, *texts, peak / 2**20


def table(rows, header="a,b,y"):
    return header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def ordinary(n=40):
    return [(round(math.sin(3 * i), 6), round(math.cos(i), 6), round(math.sin(i) + 0.1 * i, 6)) for i in range(n)]


QUICK = ("--train", "none", "--quiet")


class OptionValuesTest(HostileCase):
    """Every option that takes a value, from the page of options, with values that make no sense."""

    VALUES = ("nan", "-inf", "1e999", "-1", "0", "abc", "1;2", "99999999999999999999", "0x1p3", " ", "1e-320", "\x1b[31m")

    @staticmethod
    def options(verb):
        """Names from --help; those that name files or only change the output are tried elsewhere."""
        text = run(verb, "--help").stdout
        names = re.findall(r"^ +(?:-\w,)?(--[a-z-]+) [A-Z]", text, re.M)
        files = {"--model", "--output", "--checkpoint", "--trace", "--validation", "--config", "--csv", "--picture", "--history",
                 "--train-out", "--test-out"}
        return [name for name in dict.fromkeys(names) if name not in files]

    def try_all(self, verb, *words):
        count = 0
        for name, value in itertools.product(self.options(verb), self.VALUES):
            with self.subTest(verb=verb, option=name, value=value):
                self.ends_well(verb, *words, f"{name}={value}")
            count += 1
        self.assertGreater(count, 30, "the options of the help page were not found")

    def setUp(self):
        super().setUp()
        self.write("d.csv", table(ordinary()))

    def test_plan(self):
        self.try_all("plan", "d.csv")

    def test_solve(self):
        self.try_all("solve", "d.csv", "--quiet")

    def test_predict(self):
        self.ends_well("fit", "d.csv", *QUICK, "-m", "m.mcr", codes={0})
        self.try_all("predict", "m.mcr", "d.csv", "--quiet")

    def test_generate(self):
        self.try_all("generate", "friedman", "-n", "20", "--quiet")


class KernelTextTest(HostileCase):
    TEXTS = ("", " ", "(", ")", "()", "rbf(", "rbf)", "rbf + ", "* rbf", "rbf rbf", "rbf**2", "rbf:", "rbf::iso", "rbf:iso:iso", "rbf:ard:iso",
             "rbf:lengthscale", "rbf:lengthscale=", "rbf:lengthscale=-1", "rbf:lengthscale=0", "rbf:lengthscale=nan",
             "rbf:lengthscale=1e400", "rbf:iso:lengthscale=1:lengthscale=2", "0*rbf", "-1*rbf", "nan*rbf", "1e400*rbf", "2*3*rbf",
             "rbf*" * 200 + "rbf", "(" * 500 + "rbf" + ")" * 500, "+".join(["rbf"] * 100), "poly", "poly:0", "poly:-1", "poly:1.5", "poly:1e9",
             "rq:alpha=0", "periodic:period=0", "periodic:period=-1", "RBF", "rbf\n+ linear", "rbf\x00", "rbf;linear", "rbf[zz]", "rbf[a", "rbf(a)",
             "rbf(a,a)", "rbf(nothere)", "\u043a\u0435\u0440\u043d\u0435\u043b", "rbf" * 3000, "matern12*matern32*matern52*rq*periodic*linear",
             "--help", "1", "1 + 1", "constant", "0.5*constant + 0.5*constant")

    def test_kernels(self):
        self.write("d.csv", table(ordinary()))
        for text in self.TEXTS:
            if "\x00" in text:
                continue  # no word of a command line can hold it
            with self.subTest(kernel=text[:60]):
                self.ends_well("fit", "d.csv", "--kernel=" + text, *QUICK, "-m", "m.mcr")


class TablesTest(HostileCase):
    """Files that are no tables, for all verbs that read one."""

    FILES = {
        "empty": b"",
        "newline": b"\n",
        "header_only": b"a,b,y\n",
        "one_row": b"a,b,y\n1,2,3\n",
        "two_rows": b"a,b,y\n1,2,3\n2,1,4\n",
        "one_column": b"y\n1\n2\n3\n",
        "no_header": b"1,2,3\n4,5,6\n7,8,1\n",
        "same_names": b"a,a,y\n1,2,3\n2,3,4\n",
        "empty_name": b"a,,y\n1,2,3\n2,3,4\n",
        "ragged_short": b"a,b,y\n1,2,3\n2,3\n",
        "ragged_long": b"a,b,y\n1,2,3\n2,3,4,5\n",
        "open_quote": b'a,b,y\n1,"2,3\n2,3,4\n',
        "stray_quote": b'a,b,y\n1,"2"x,3\n2,3,4\n',
        "zeros": b"a,b,y\n1,2,\x003\n",
        "utf16": "a,b,y\n1,2,3\n2,3,4\n".encode("utf-16"),
        "latin1": "a,b,gr\xf6\xdfe\n1,2,3\n2,3,4\n4,1,2\n".encode("latin-1"),
        "bom": b"\xef\xbb\xbfa,b,y\n1,2,3\n2,3,4\n5,1,2\n",
        "cr_only": b"a,b,y\r1,2,3\r2,3,4\r4,4,1\r",
        "escapes": b"a,\x1b[31mred\x1b[0m,y\n1,2,3\n2,x,4\n",
        "escape_cell": b"a,b,y\n1,\x1b]0;title\x07,3\n2,3,4\n",
        "escape_target": b"a,b,\x1b[2J\n1,2,3\n2,3,4\n3,3,1\n",
        "text_column": b"a,b,y\n1,red,3\n2,blue,4\n3,red,1\n",
        "text_target": b"a,b,y\n1,2,red\n2,3,blue\n3,3,red\n",
        "huge": b"a,b,y\n1e308,2,3\n-1e308,3,4\n1,1,1\n",
        "infinite": b"a,b,y\ninf,2,3\n1,3,4\n",
        "overflow": b"a,b,y\n1e999,2,3\n1,3,4\n",
        "tiny": b"a,b,y\n1e-320,2,3\n1e-310,3,4\n0,1,2\n",
        "constant_target": b"a,b,y\n1,2,7\n2,3,7\n5,1,7\n",
        "constant_inputs": b"a,b,y\n1,2,7\n1,2,8\n1,2,9\n",
        "all_missing": b"a,b,y\n1,2,\n2,3,NA\n5,1,null\n",
        "missing_input": b"a,b,y\n1,,7\n2,3,8\n5,1,9\n",
        "hash_rows": b"a,b,y\n#N/A,2,7\n2,3,8\n#ff,1,9\n",
        "decimal_comma": b"a;b;y\n1,5;2,0;3\n2,5;1,0;4\n",
        "semicolons": b"a;b;y\n1;2;3\n2;3;4\n3;3;9\n",
        "long_name": b"a," + b"n" * 100000 + b",y\n1,2,3\n2,3,4\n4,4,4\n",
        "long_cell": b"a,b,y\n1," + b"9" * 100000 + b",3\n2,3,4\n",
        "percent": b"a,b,y\n1%,2,3\n2%,3,4\n",
        "braces": b"{},{0},{y}\n1,2,3\n2,3,4\n3,1,2\n",
        "backquotes": b"`target`,`noise`,y\n1,2,3\n2,3,4\n3,x,2\n",
        "many_columns": (",".join(f"c{i}" for i in range(3000)) + "\n" + ",".join("1" for i in range(3000)) + "\n").encode(),
        "not_gzip": b"\x1f\x8b\x08\x00garbage",
        "binary": bytes(range(256)) * 20,
    }

    def try_file(self, name, content):
        self.write("x.csv", content)
        for words in (("fit", "x.csv", *QUICK, "-m", "x.mcr"), ("plan", "x.csv"), ("solve", "x.csv", "--quiet"),
                      ("predict", "m.mcr", "x.csv", "--quiet"), ("evaluate", "m.mcr", "x.csv", "--quiet"),
                      ("split", "x.csv", "--train-out", "t.csv", "--test-out", "u.csv", "--quiet")):
            with self.subTest(file=name, verb=words[0]):
                self.ends_well(*words)

    def test_files(self):
        self.write("d.csv", table(ordinary()))
        self.ends_well("fit", "d.csv", *QUICK, "-m", "m.mcr", codes={0})
        for name, content in self.FILES.items():
            self.try_file(name, content)

    def test_the_same_from_standard_input(self):
        for name, content in self.FILES.items():
            with self.subTest(file=name):
                self.ends_well("fit", "-", *QUICK, "-m", "x.mcr", stdin=content)


class ExtremeNumbersTest(HostileCase):
    """Data that learn, or a sentence why not."""

    def shapes(self):
        base = ordinary(30)
        yield "far away", [(a + 1e12, b, y) for a, b, y in base]
        yield "large target", [(a, b, y * 1e290) for a, b, y in base]
        yield "small target", [(a, b, y * 1e-290) for a, b, y in base]
        yield "target on an offset", [(a, b, 1e15 + y) for a, b, y in base]
        yield "one outlier", base + [(0, 0, 1e200)]
        yield "one far input", base + [(1e200, 0, 1)]
        yield "every row twice", base + base
        yield "the same input, other targets", [(1, 1, i) for i in range(30)]
        yield "nearly equal inputs", [(1 + i * 1e-16, 1, i) for i in range(30)]
        yield "one distinct row", [(0, 0, 1)] * 29 + [(1, 0, 2)]
        yield "negative zero", [(-0.0 * i, i, i) for i in range(30)]
        yield "integers that are no doubles", [(9007199254740993 + i, i, i) for i in range(30)]

    def test_fits(self):
        for name, rows in self.shapes():
            for extra in ((), ("--mean", "linear"), ("--likelihood", "student-t"), ("--no-standardize",),
                          ("--solver", "cg"), ("--train", "none")):
                with self.subTest(data=name, options=extra):
                    self.write("x.csv", table(rows))
                    few = () if "none" in extra else ("--steps", 3)
                    code = self.ends_well("fit", "x.csv", "-m", "x.mcr", "--quiet", *few, *extra)
                    if code == 0:
                        self.ends_well("predict", "x.mcr", "x.csv", "--quiet")


class NamesTest(HostileCase):
    """Names of files and columns that need care."""

    def test_names_of_files(self):
        self.write("d.csv", table(ordinary()))
        for name in ("a b.csv", "a'b.csv", "a\nb.csv", "a\x1b[31mb.csv", "{}.csv", "`x`.csv", "%s.csv", "-dash.csv", "ü.csv", "n" * 200 + ".csv"):
            with self.subTest(name=name):
                os.link(self.folder / "d.csv", self.folder / name)
                self.ends_well("fit", f"./{name}", *QUICK, "-m", f"./{name}.mcr")
                self.ends_well("fit", f"./{name}.nowhere", *QUICK, "-m", "x.mcr", codes={3})
                self.ends_well("predict", f"./{name}", "d.csv", "--quiet", codes={6})

    def test_names_of_columns(self):
        for name in ("mean", "q05", "label", "probability_1", "error_bound", "row", "a=b", "a b", "a:b", "é", "日本", "\u202edlrow",
                     "x" * 500, "*", "+", "1", "NA", "#a", "`a`", "{a}", "<b>", "&amp;", "--target", "\x7f", "\u009b31m"):
            with self.subTest(column=name):
                self.write("x.csv", f'"{name}",b,y\n' + "".join(f"{a},{b},{y}\n" for a, b, y in ordinary()))
                self.ends_well("fit", "x.csv", *QUICK, "-m", "x.mcr")
                self.ends_well("predict", "x.mcr", "x.csv", "--quiet", "--with-inputs", "-o", "p.csv")  # names as they are
                self.ends_well("info", "x.mcr")
