"""--solver ulisse: one random solution, said to be one; refused where a certified solution is needed."""

from harness import CliCase, read_csv


class UlisseTest(CliCase):
    def setUp(self):
        super().setUp()
        self.generate("d.csv", "friedman", "-n", 300, "-d", 5)
        self.words = ("solve", "d.csv", "--noise", 0.01, "--lengthscale", 2, "--solver", "ulisse", "--precision", "double")

    def test_solve_says_what_it_is_and_what_it_has(self):
        record = self.json(*self.words, "-o", "a.csv")
        self.assertEqual(record["stop"], "random_stop")
        self.assertEqual(record["preconditioner"], "none")  # auto would change P on the way
        self.assertGreater(record["relative_residual"], 1e-6)
        self.assertLess(record["relative_residual"], 1)
        self.assertGreater(record["mean_error_bound"], 0)
        self.assertIn("right on average", record["accuracy_missed"])
        stop = record["random_stop"]
        self.assertEqual(stop["early_iterations"] + stop["extra_iterations"], record["iterations"])
        self.assertFalse(stop["heavy_tail"])
        self.assertEqual(len(read_csv((self.folder / "a.csv").read_text())["a"]), 300)
        text = self.mercer(*self.words).stdout
        self.assertIn("random stop", text)
        self.assertIn("one random solution", text)

    def test_a_seed_is_a_draw(self):
        def weights(seed):
            self.mercer(*self.words, "--seed", seed, "-o", "a.csv", "--preconditioner", "nystrom", "--rank", 20)
            return read_csv((self.folder / "a.csv").read_text())["a"]
        self.assertEqual(weights(1), weights(1))
        self.assertTrue(any(weights(1) != weights(seed) for seed in (2, 3, 4)))

    def test_a_heavy_tail_is_warned_of(self):
        result = self.mercer(*self.words, "--continuation", "conditional", "--beta", 1)
        self.assertIn("heavy tail", result.stderr)

    def test_compare_runs_it_and_gives_it_no_win(self):
        record = self.json("compare", "d.csv", "--lengthscales", 2, "--noises", 0.01, "--solvers", "cg,ulisse",
                           "--preconditioners", "none,nystrom,auto", "--rank", 20, "--early-tolerance", 0.1)
        runs = {run["label"]: run for run in record["runs"]}
        self.assertEqual(runs["ulisse"]["stop"], "random_stop")
        self.assertEqual(runs["ulisse + nystrom"]["stop"], "random_stop")
        self.assertIn("bias", runs["ulisse + auto"]["reason"])
        self.assertIsNone(runs["ulisse"]["improvement"])
        self.assertFalse(any("ulisse" in win["by_seconds"] for win in record["winners"]))

    def test_refusals(self):
        self.refused(2, "fit", "d.csv", "-m", "m.mcr", "--solver", "ulisse", saying="right on average")
        self.refused(2, "plan", "d.csv", "--solver", "ulisse", saying="right on average")
        self.mercer("fit", "d.csv", "-m", "m.mcr", "--train", "none")
        self.refused(2, "predict", "m.mcr", "d.csv", "--solver", "ulisse", saying="right on average")
        self.refused(2, "solve", "d.csv", "--beta", 0.1, saying="--solver ulisse")
        self.refused(2, "solve", "d.csv", "--solver", "cg", "--early-tolerance", 0.1, saying="--solver ulisse")
        self.refused(2, *self.words, "--beta", 0.1, saying="means nothing")
        self.refused(2, *self.words, "--early-tolerance", 1e-7, saying="must be above --tolerance")
        self.refused(2, *self.words, "--tolerance", 0.05, saying="must be above --tolerance")
        self.refused(2, *self.words, "--rank", 20, saying="name one")
        self.refused(2, *self.words, "--preconditioner", "regularized", saying="changes from step to step")
        self.refused(2, "compare", "d.csv", "--solvers", "cg", "--early-tolerance", 0.1, saying="--solver ulisse")
