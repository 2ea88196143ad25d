"""Other machines, by their arithmetic: what docs/numerics.md promises across them."""

import os
import platform
import unittest

from harness import CliCase, read_csv

# An old processor: SSE kernels of OpenBLAS, tiles without SIMD, a libm without fused multiply-adds.
OLD = {"OPENBLAS_CORETYPE": "Prescott", "MERCER_SIMD": "SCALAR",
       "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"}


@unittest.skipUnless(platform.machine() == "x86_64", "the other arithmetics are those of x86-64")
class ArithmeticTest(CliCase):
    def setUp(self):
        super().setUp()
        self.generate("all.csv", "friedman", "-n", 500, "-d", 5, "--seed", 4)
        self.mercer("split", "all.csv", "--test-fraction", 0.3, "--train-out", "d.csv",
                    "--test-out", "t.csv")
        self.old = {**os.environ, **OLD}

    def predictions(self, model, env):
        return read_csv(self.mercer("predict", model, "t.csv", "--quiet", env=env).stdout)

    def record(self, env, solver, *words):
        return self.json("predict", "m.mcr", "t.csv", "--quiet", "--solver", solver, *words, env=env)

    def records(self, solver):
        """What is predicted from m.mcr with this solver, here and there."""
        return [self.record(env, solver) for env in (None, self.old)]

    def sds_agree(self, one, other, bound):
        for a, b in zip(one["sd_latent"], other["sd_latent"]):
            self.assertLessEqual(abs(a - b), bound)

    def agree(self, one, other, share=1.0):
        """Means within `share` of the sum of their error bounds; and not the same numbers at all."""
        gaps = [abs(a - b) for a, b in zip(one["mean"], other["mean"])]
        bounds = [a + b for a, b in zip(one["error_bound"], other["error_bound"])]
        self.assertEqual(len(gaps), 150)
        for gap, bound in zip(gaps, bounds):
            self.assertLessEqual(gap, share * bound)
        self.assertGreater(max(gaps), 0, "the other arithmetic was not used")

    def test_one_model_file_predicts_the_same_on_another_machine(self):
        for solver in ("cholesky", "cg"):
            with self.subTest(solver=solver):
                self.mercer("fit", "d.csv", "--restarts", 0, "--solver", solver, "-m", "m.mcr", "--quiet")
                direct, solved = self.records("cholesky"), self.records("cg")
                self.agree(*direct)
                # Rounding of an sd, which a solve to 1e-10 bounds by the weights that it finds. A factorisation
                # of 350 rows commits (e + 3 g) / e < 10 times that, on either machine (docs/certificate.md).
                rounding = self.record(None, "cg", "--tolerance", "1e-10")["sd_error_bound"]
                self.sds_agree(*direct, 20 * rounding)
                self.sds_agree(*solved, sum(each["sd_error_bound"] for each in solved))

    def test_a_model_solved_on_another_machine_is_within_both_certificates(self):
        words = ("--train", "none", "--noise", 0.05, "--solver", "cg", "--tolerance", "1e-4", "--quiet")
        for precision in ("double", "mixed"):
            with self.subTest(precision=precision):
                self.mercer("fit", "d.csv", *words, "--precision", precision, "-m", "here.mcr")
                self.mercer("fit", "d.csv", *words, "--precision", precision, "-m", "there.mcr",
                            env=self.old)
                self.agree(self.predictions("here.mcr", None), self.predictions("there.mcr", self.old))

    def test_an_instruction_set_that_is_not_there_is_refused(self):
        self.mercer("fit", "d.csv", "--train", "none", "-m", "m.mcr", "--quiet")
        self.refused(2, "fit", "d.csv", "--train", "none", "-m", "n.mcr", "--quiet",
                     env={**os.environ, "MERCER_SIMD": "ALTIVEC"},
                     saying=("ALTIVEC", "MERCER_SIMD", "SCALAR"))
