"""mercer compare: the grid, its files, and what it refuses."""

import math
import xml.etree.ElementTree

from harness import CliCase, rows_of


class CompareTest(CliCase):
    GRID = ("--lengthscales", "0.5:2:2", "--noises", "1e-3,1e-1", "--preconditioners",
            "none,jacobi,pivoted-cholesky,auto", "--max-iterations", "4000")

    def test_json_has_every_run_and_the_winners(self):
        self.generate("d.csv", "gp", "-n", 120, "--seed", 4)
        record = self.json("compare", "d.csv", *self.GRID)
        self.has(record, "n d kernel operator precision lengthscales noises methods runs winners "
                         "peak_rss_bytes data")
        self.assertEqual(record["methods"], ["cg", "jacobi", "pivoted-cholesky", "auto"])
        self.assertEqual(len(record["runs"]), 16)
        self.assertEqual(len(record["winners"]), 4)
        plain = {(r["lengthscale"], r["noise"]): r for r in record["runs"] if r["label"] == "cg"}
        for run in record["runs"]:
            self.has(run, "label solver preconditioner lengthscale noise stop iterations "
                          "inner_iterations matvecs build_seconds solve_seconds relative_residual "
                          "rank improvement")
            self.assertEqual(run["stop"], "converged")
            ratio = run["iterations"] / plain[run["lengthscale"], run["noise"]]["iterations"]
            self.assertAlmostEqual(run["improvement"], math.log10(ratio), places=9)

    def test_csv_and_picture(self):
        self.generate("d.csv", "gp", "-n", 80, "--seed", 4)
        text = self.mercer("compare", "d.csv", *self.GRID, "--csv", "runs.csv", "--picture",
                           "map.svg").stdout
        self.assertIn("least time", text)
        rows = rows_of((self.folder / "runs.csv").read_text())
        self.assertEqual(len(rows), 16)
        self.assertEqual({row["stop"] for row in rows}, {"converged"})
        root = xml.etree.ElementTree.fromstring((self.folder / "map.svg").read_text())
        self.assertTrue(root.tag.endswith("svg"))
        words = "".join(node.text or "" for node in root.iter())
        self.assertIn("pivoted-cholesky", words)

    def test_one_cell_is_a_table_of_methods(self):
        self.generate("d.csv", "gp", "-n", 80, "--seed", 4)
        text = self.mercer("compare", "d.csv", "--lengthscales", "1", "--noises", "0.01",
                           "--preconditioners", "none,hybrid", "--solvers", "auto,cholesky").stdout
        for word in ("hybrid", "cholesky", "products", "residual", "*"):
            self.assertIn(word, text)

    def test_limits_are_said(self):
        self.generate("d.csv", "gp", "-n", 80, "--seed", 4)
        text = self.mercer("compare", "d.csv", "--max-iterations", "2", "--preconditioners", "none",
                           "--lengthscales", "1,2", "--noises", "1e-6").stdout
        self.assertIn(">2", text)

    def test_rows_with_noise_of_their_own(self):
        lines = ["x,y,e,c"] + [f"{i / 60},{math.sin(i / 9):.6f},{0.5 if i % 3 else 0},{1 + i % 4}" for i in range(60)]
        self.write("d.csv", "\n".join(lines) + "\n")
        words = ("--target", "y", "--noise-column", "e", "--count-column", "c", "--kernel", "rbf:iso")
        record = self.json("compare", "d.csv", *words, "--lengthscales", "0.5", "--noises", "0.01", "--solvers", "auto,kcg",
                           "--preconditioners", "none,hybrid", "--operator", "tiled", "--precision", "double")
        self.assertEqual(record["d"], 1)
        runs = {run["label"]: run for run in record["runs"]}
        self.assertIn("same noise", runs["kcg"]["reason"])
        alone = self.json("solve", "d.csv", *words, "--lengthscale", "0.5", "--noise", "0.01", "--signal-variance", "1",
                          "--solver", "cg", "--preconditioner", "hybrid", "--operator", "tiled", "--precision", "double")
        for key in ("iterations", "matvecs", "relative_residual"):
            self.assertEqual(runs["hybrid"][key], alone[key])

    def test_refusals(self):
        self.generate("d.csv", "gp", "-n", 30, "--seed", 4)
        for words, saying in ((("--lengthscales", "a"), "'a' is not a number"),
                              (("--lengthscales", "1:2"), "FROM:TO:COUNT"),
                              (("--lengthscales", "0:1:3"), "positive"),
                              (("--noises", "-1"), "--noises"),
                              (("--preconditioners", "magic"), "nystrom"),
                              (("--solvers", "magic"), "fgmres"),
                              (("--cell-seconds", "0"), "--cell-seconds"),
                              (("--json", "--csv", "-"), "standard output"),
                              (("--tolerance", "1e-3", "--rms-tolerance", "1e-3"), "two rules"),
                              (("--csv", "a.x", "--picture", "a.x"), "same file"),
                              (("--preconditioners", "vecchia", "--rank", "5"), "--rank"),
                              (("--lengthscales", "inf:1:3"), "positive"),
                              (("--picture", "no/such/folder/a.svg"), "--picture")):
            with self.subTest(words=words):
                self.refused(2, "compare", "d.csv", *words, saying=saying)
