"""The edges: numbers at the ends of their range, options that contradict each other, small memory."""

import math

from harness import CliCase, read_csv


def rows(count, *functions):
    """Lines of numbers: row i holds f(i) for each function."""
    return "".join(",".join(repr(float(f(i))) for f in functions) + "\n" for i in range(count))


class OverflowTest(CliCase):
    def setUp(self):
        super().setUp()
        self.write("d.csv", "a,b,y\n" + rows(30, lambda i: i / 10, math.cos, math.sin))
        self.mercer("fit", "d.csv", "--kernel", "poly:16", "--train", "none", "-m", "m.mcr", "--quiet")

    def test_a_row_that_overflows_is_named(self):
        self.write("far.csv", "a,b,y\n1,1,0\n0.5,0.5,0\n1e30,0,0\n")
        for words in ((), ("--json",), ("-o", "p.csv"), ("--no-variance",), ("--solver", "cg", "--json")):
            with self.subTest(words=words):
                self.refused(3, "predict", "m.mcr", "far.csv", *words, saying=("line 4", "overflows"))
        self.refused(3, "evaluate", "m.mcr", "far.csv", "--json", saying=("line 4", "overflows"))

    def test_rows_that_do_not_overflow_are_finite(self):
        self.write("near.csv", "a,b\n1,1\n1e3,-1e3\n")
        record = self.json("predict", "m.mcr", "near.csv")
        for name in ("mean", "sd_latent", "sd_obs", "q05", "q95", "error_bound"):
            self.assertTrue(all(math.isfinite(value) for value in record[name]), name)
