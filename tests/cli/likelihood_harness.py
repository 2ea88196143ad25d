"""What the cases of classes, counts and outliers share: small tables and ways to read predictions."""

import math
import random

from harness import CliCase, rows_of

QUICK = ("--restarts", 0, "--quiet")
FIXED = ("--train", "none", "--lengthscale", 1, "--signal-variance", 4, "--kernel", "matern52:iso",
         "--quiet")


def points(n, seed=1):
    """n triples: two inputs, and a number whose sign is a class that can be learned, but not quite."""
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        a, b = rng.uniform(-2, 2), rng.uniform(-2, 2)
        out.append((round(a, 4), round(b, 4), a + 0.5 * math.sin(3 * b) + 0.3 * rng.gauss(0, 1)))
    return out


def poisson(rng, rate):
    """A draw, by counting exponential gaps."""
    count, gap = -1, 0.0
    while gap < rate:
        gap += rng.expovariate(1)
        count += 1
    return count


class LikelihoodCase(CliCase):
    def table(self, name, target, n=120, seed=1):
        """A file with inputs a and b and the target y = target(number, row), text as given."""
        lines = [f"{a},{b},{target(v, i)}" for i, (a, b, v) in enumerate(points(n, seed))]
        self.write(name, "a,b,y\n" + "\n".join(lines) + "\n")
        return name

    def classes(self, name, labels=("0", "1"), **keywords):
        return self.table(name, lambda v, i: labels[v > 0], **keywords)

    def three(self, name, labels=("0", "1", "2"), **keywords):
        return self.table(name, lambda v, i: labels[(v > -0.7) + (v > 0.7)], **keywords)

    def counts(self, name, **keywords):
        rng = random.Random(7)
        return self.table(name, lambda v, i: poisson(rng, 3 * math.exp(0.6 * v)), **keywords)

    def predict(self, model, data, *words):
        return rows_of(self.mercer("predict", model, data, "--quiet", *words).stdout)

    def check_probabilities(self, rows, labels):
        """They sum to one, and the label is that of the largest."""
        for row in rows:
            p = {label: float(row[f"probability_{label}"]) for label in labels}
            self.assertAlmostEqual(sum(p.values()), 1, places=12)
            self.assertTrue(all(0 <= value <= 1 for value in p.values()), p)
            self.assertEqual(p[row["label"]], max(p.values()))
