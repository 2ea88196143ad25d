"""The one list of options: help pages, docs/options.md, --config, and the record that can be given back."""

import json
import re
from pathlib import Path

from harness import CliCase, run

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
VERBS = "fit predict evaluate sample cv solve compare plan info generate split demo".split()


def flags_of(*words):
    """The options on the help page of a verb."""
    lines = run(*words, "--help").stdout.splitlines()
    return {flag for line in lines if re.match(r"  -", line)
            for flag in re.match(r"  (?:-\w,)?(-[\w-]+)", line).groups()} - {"--help"}


class OptionPageTest(CliCase):
    def test_the_page_is_what_the_list_says(self):
        printed = self.mercer("options").stdout
        self.assertEqual(printed, (DOCS / "options.md").read_text(),
                         "docs/options.md is stale: mercer options > docs/options.md")

    def test_every_option_of_every_verb_is_on_the_page(self):
        page = set(re.findall(r"^\| `(-[\w-]+)`", (DOCS / "options.md").read_text(), re.M))
        shown = set()
        for verb in VERBS:
            flags = flags_of(verb)
            self.assertGreater(len(flags), 1, verb)
            shown |= flags
        shown |= flags_of("compare", "--methods", "exact")
        self.assertEqual(shown, page)

    def test_no_help_page_shows_the_names_of_the_library(self):
        for verb in VERBS:
            self.assertNotIn("`", self.mercer(verb, "--help").stdout, verb)


class ConfigTest(CliCase):
    def predictions(self, model):
        return self.mercer("predict", model, "d.csv", "--quiet").stdout

    def give_back(self, *words):
        """Fits twice, the second time from the record of the first; returns both records."""
        first = self.json("fit", "d.csv", *words, "-m", "a.mcr")
        self.write("run.json", json.dumps(first))
        again = self.json("fit", "d.csv", "--config", "run.json", "-m", "b.mcr")
        self.assertEqual(again["options"], first["options"])
        for key in ("hyperparameters", "log_marginal_likelihood", "likelihood", "task", "solver", "preconditioner", "rank",
                    "operator", "precision", "train_method", "steps", "iterations"):
            self.assertEqual(again[key], first[key], key)
        self.assertEqual(self.predictions("a.mcr"), self.predictions("b.mcr"))
        return first, again

    def test_the_record_of_a_fit_gives_the_same_bits(self):
        self.generate("d.csv", "friedman", "-n", 120, "-d", 6)
        first, _ = self.give_back("--kernel", "rbf:iso + linear", "--restarts", 1, "--seed", 5, "--steps", 20,
                                  "--mean", "constant", "--test-fraction", 0.25, "--inputs", "x1,x2,x3",
                                  "--memory", "2G", "--no-standardize", "--tolerance", "1e-7")
        self.assertEqual(first["options"]["inputs"], ["x1", "x2", "x3"])
        self.assertEqual((first["options"]["standardize"], first["options"]["memory"]), (False, 2 << 30))

    def test_the_record_of_a_run_that_learns_nothing(self):
        self.generate("d.csv", "gp", "-n", 80)
        self.give_back("--train", "none", "--lengthscale", "0.3,0.7000000000000001", "--noise", "0.02",
                       "--solver", "cg", "--preconditioner", "nystrom", "--rank", 10, "--landmarks", "kmeans")

    def test_the_record_of_classes(self):
        self.write("d.csv", "a,b,y\n" + "".join(
            f"{i % 7},{i % 5},{'yes' if (i % 7) + (i % 5) > 4 else 'no'}\n" for i in range(60)))
        first, again = self.give_back("--restarts", 0)
        self.assertEqual(first["options"]["task"], "auto")
        self.assertEqual(again["task"], "classification")

    def test_solve_compare_and_plan_take_their_records(self):
        self.generate("d.csv", "gp", "-n", 60)
        first = self.json("solve", "d.csv", "--solver", "cg", "--preconditioner", "none", "--max-iterations", 500)
        self.write("run.json", json.dumps(first))
        again = self.json("solve", "d.csv", "--config", "run.json")
        self.assertEqual((again["solver"], again["iterations"], again["relative_residual"]),
                         (first["solver"], first["iterations"], first["relative_residual"]))
        first = self.json("compare", "d.csv", "--lengthscales", "0.5:2:2", "--noises", 0.1,
                          "--preconditioners", "none,jacobi")
        self.write("run.json", json.dumps(first))
        again = self.json("compare", "d.csv", "--config", "run.json")
        self.assertEqual((again["lengthscales"], again["methods"]), (first["lengthscales"], first["methods"]))
        first = self.json("plan", "d.csv", "--for", "solve", "--solver", "cholesky")
        self.write("run.json", json.dumps(first))
        self.assertEqual(self.json("plan", "d.csv", "--config", "run.json")["for"], "solve")

    def test_plan_takes_the_record_of_a_fit(self):
        self.generate("d.csv", "gp", "-n", 60)
        self.write("run.json", json.dumps(self.json("fit", "d.csv", "--train", "none", "--test-fraction", 0.2)))
        done = self.mercer("plan", "d.csv", "--config", "run.json")
        self.assertIn("'test_fraction' is no option of plan", done.stderr)
        self.assertNotIn("'method'", done.stderr)

    def test_words_override_the_file(self):
        self.generate("d.csv", "gp", "-n", 60)
        self.write("c.json", '{"kernel": "rbf", "train": "none", "noise": 0.5, "merge": false}')
        options = self.json("fit", "d.csv", "--config", "c.json", "--noise", 0.25, "--merge")["options"]
        self.assertEqual([options[key] for key in ("kernel", "train", "noise", "merge")],
                         ["rbf", "none", 0.25, True])

    def test_what_the_file_says_wrongly_is_refused(self):
        self.generate("d.csv", "gp", "-n", 20)
        for text, saying in (('{"kernell": "rbf"}', ("'kernell'", "did you mean 'kernel'?")),
                             ('{"max_iterations": "many"}', ("'max_iterations'", "a whole number", '"many"')),
                             ('{"max_iterations": 1.5}', ("'max_iterations'", "a whole number")),
                             ('{"merge": 1}', ("'merge'", "true or false")),
                             ('{"lengthscale": ["a"]}', ("'lengthscale'", "a list of numbers")),
                             ('{"solver": "magic"}', ("--solver", "'magic'", "cholesky")),
                             ('{"noise": -1}', ("--noise is -1", "positive")),
                             ('{"memory": "lots"}', ("'memory'", "lots")),
                             ('{"options": {"text_target": true}}', "'text_target'"),
                             ('{"kernel": "rbf"', "JSON"), ("[]", "JSON"), ("", "JSON")):
            self.write("c.json", text)
            for verb in ("fit", "plan"):
                with self.subTest(text=text, verb=verb):
                    said = self.refused(2, verb, "d.csv", "--config", "c.json", saying=saying)
                    self.assertIn("c.json: ", said)
        self.refused(2, "fit", "d.csv", "--config", "nowhere.json", saying="nowhere.json")
        # An option of learning has no meaning without it, from a file too.
        self.write("c.json", '{"train": "none", "steps": 5}')
        self.refused(2, "fit", "d.csv", "--config", "c.json", saying=("--train none", "--steps"))
        self.write("c.json", '{"train": "lbfgs"}')
        self.refused(2, "solve", "d.csv", "--config", "c.json", saying="'train'")

    def test_the_model_file_says_what_it_was_made_with(self):
        self.generate("d.csv", "gp", "-n", 60)
        self.mercer("fit", "d.csv", "--train", "none", "--kernel", "rbf", "--max-iterations", 77, "-m", "m.mcr")
        options = self.json("info", "m.mcr")["record"]["options"]
        self.assertEqual([options[key] for key in ("kernel", "train", "max_iterations", "likelihood", "merge")],
                         ["rbf", "none", 77, "gaussian", True])
        self.assertNotIn("checkpoint", options)

    def test_a_checkpoint_is_of_one_set_of_options(self):
        self.generate("d.csv", "gp", "-n", 60)
        words = ("fit", "d.csv", "--restarts", 0, "--checkpoint", "c.mcc", "-m", "m.mcr")
        self.mercer(*words)
        self.assertGreater(self.json(*words, "--memory", "1G")["resumed_evaluations"], 0)
        self.refused(2, *words, "--max-iterations", 99, saying="c.mcc")
