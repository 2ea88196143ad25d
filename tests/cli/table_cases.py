"""A real person's table: text, dates, ids, missing cells, strange separators, control characters, and more rows than fit.

Hostile tables are made here, one entry each: the exit code, a sentence that says what, where and what to do, and nothing
that steers a terminal.
"""

import gzip
import json
import math
import random
import re
import shlex
import subprocess
import threading

from harness import TIMEOUT, CliCase, read_report, rows_of, watched

# What a terminal may be sent: letters, line ends and tabs.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
INTERNALS = ("json.exception", "std::", "terminate", "basic_string", "Traceback", "internal error", "vector")
QUICK = ("--train", "none")


def numbers(n=20, header="a,b,y", separator=","):
    return header + "\n" + "".join(
        separator.join((str(i), f"{math.cos(i):.3f}", f"{math.sin(i):.3f}")) + "\n" for i in range(n))


def houses(n=120, seed=1):
    """An id, text, dates, missing cells, a rating and a skewed target."""
    rng = random.Random(seed)
    lines = ["Id,Lot Area,Neighbourhood,Style,sold,Alley,quality,price"]
    for i in range(n):
        area = "NA" if i % 9 == 0 else 3000 + rng.randrange(9000)
        lines.append(",".join(map(str, (
            f"H{i:04}", area, rng.choice(("NAmes", "OldTown", "Gilbert")), rng.choice(("1Story", "2Story")),
            f"20{rng.randrange(10):02}-{1 + rng.randrange(12):02}-{1 + rng.randrange(28):02}",
            rng.choice(("None", "Pave", "Grvl")), 3 + rng.randrange(6), int(1e5 * rng.lognormvariate(0, 0.4))))))
    return "\n".join(lines) + "\n"


# name: (table, words, exit code, what the sentence says)
HOSTILE = {
    "comment below the header": ("a,b,y\n1,2,3\n# late\n4,5,6\n", (), 3, ("line 3", "1 field", "above the header")),
    "comment with as many fields": ("a,b,y\n1,2,3\n# x,5,6\n", (), 3, ("line 3", "'a'", "above the header")),
    "comment at the end": (numbers() + "# the end", (), 3, ("line 22", "above the header")),
    "comment below no header": ("1,2,3\n4,5,6\n# c\n", (), 3, ("line 3", "above the header")),
    "only comments": ("# a\n# b\n", (), 3, "empty"),
    "comment of one byte": ("#", (), 3, "empty"),
    "header is a comment, then text": ("# x y\na,b\nu,v\n", (), 3, "'a'"),
    "colour codes as numbers": ("c,b,y\n#ff0000,1,2\n#00ff00,2,3\n", (), 3, ("'c'", "--categorical c")),
    "ragged with semicolons": ("a;b;y\n1;2;3\n4;5\n6;7;8\n", (), 3, ("line 3", "2 fields")),
    "decimal commas": ("a;b;y\n1,5;2;3\n2,5;3;4\n", (), 3, ("'1,5'", "decimal")),
    "decimal commas quoted": ('a,b,y\n"1,5",2,3\n"2,5",3,4\n', (), 3, ("'a'", "decimal")),
    "thousands": ('a,b,y\n"1,500,000",2,3\n"2,500,000",3,4\n', (), 3, ("'a'", "'1,500,000'")),
    "spaces between": ("a b y\n1 2 3\n4 5 6\n", (), 3, ("one column only", "--delimiter")),
    "wrong delimiter": (numbers(), ("--delimiter", ";"), 3, "one column only"),
    "delimiter of two characters": (numbers(), ("--delimiter", ";;"), 2, ("--delimiter", "semicolon")),
    "delimiter that is a digit": (numbers(), ("--delimiter", "1"), 2, "--delimiter"),
    "delimiter that is a quote": (numbers(), ("--delimiter", '"'), 2, "--delimiter"),
    "delimiter that is an escape": (numbers(), ("--delimiter", "\x1b"), 2, ("--delimiter", "\\x1b")),
    "delimiter that is a word": (numbers(), ("--delimiter", "colon"), 2, ("'colon'", "tab")),
    "double spaces": ("a b y\n1  2 3\n", ("--delimiter", "space"), 3, ("line 2", "4 fields")),
    "escape in a name": ("a,\x1b[31mb,y\n1,u,3\n2,v,4\n", (), 3, "\\x1b[31mb"),
    "escape in a cell": ("a,b,y\n1,\x1b]0;title\x07,3\n2,3,4\n", (), 3, "\\x1b]0;title\\x07"),
    "eight-bit escape in a cell": (b"a,b,y\n1,\x9b31m,3\n2,3,4\n", (), 3, "\\x9b31m"),
    "escape of two bytes in a cell": ("a,b,y\n1,\u009b31m,3\n2,3,4\n", (), 3, "\\x9b31m"),
    "text that runs backwards": ("a,b,y\n1,\u202eabc,3\n2,3,4\n", (), 3, "\\u202e"),
    "backspaces": ("a,b,y\n1,good\b\b\b\bevil,3\n2,3,4\n", (), 3, "\\x08"),
    "carriage return in a quoted cell": ('a,b,y\n1,"x\ry",3\n2,3,4\n', (), 3, "x\\x0dy"),
    "line end in a name": ('a,"b\nc",y\n1,u,3\n2,v,4\n', (), 3, "b\\x0ac"),
    "escape in the name asked for": (numbers(), ("--target", "\x1b[2J"), 3, "\\x1b[2J"),
    "escape in an option": (numbers(), ("--kernel", "\x1b[2J"), 2, "\\x1b[2J"),
    "escape in a word too many": (numbers(), ("\x1b[2J",), 2, "\\x1b[2J"),
    "name that is not UTF-8": (b"a,\xe9t\xe9,y\n1,2,3\n", (), 3, "UTF-8"),
    "level that is not UTF-8": (b"a,b,y\n1,\xe9,3\n2,u,4\n", ("--categorical", "b"), 3, ("line 2", "UTF-8")),
    "unknown name to exclude": (numbers(header="height,b,y"), ("--exclude", "hieght"), 3, ("--exclude", "did you mean 'height'?")),
    "input that is excluded": (numbers(), ("--inputs", "a,b", "--exclude", "b"), 2, ("--inputs", "--exclude", "'b'")),
    "target that is excluded": (numbers(), ("--exclude", "y"), 2, ("'y'", "--exclude", "--target")),
    "everything excluded": (numbers(), ("--exclude", "a,b"), 3, "no column is left"),
    "unknown id": (numbers(), ("--id", "c"), 3, ("--id", "'c'")),
    "id that is an input": (numbers(), ("--inputs", "a,b", "--id", "a"), 2, ("--id", "'a'")),
    "id that is the target": (numbers(), ("--target", "y", "--id", "y"), 2, ("--id", "'y'")),
    "id that is excluded": (numbers(), ("--id", "a", "--exclude", "a"), 2, ("--id", "--exclude")),
    "unknown dates": (numbers(), ("--dates", "c"), 3, ("--dates", "'c'")),
    "target of dates": ("a,y\n1,2010-01-01\n2,2010-01-02\n", ("--dates", "y", "--task", "regression"), 2, "--dates"),
    "dates that are categories": (numbers(), ("--dates", "a", "--categorical", "a"), 2, ("--dates", "--categorical")),
    "numbers as dates": (numbers(), ("--dates", "a"), 3, ("line 2", "'a'", "not a date")),
    "day or month first": ("d,y\n05/06/2010,1\n07/08/2010,2\n", ("--dates", "d"), 3, ("line 2", "'d'", "year first")),
    "thirtieth of February": ("d,y\n2010-02-28,1\n2010-02-30,2\n", ("--dates", "d"), 3, ("line 3", "'2010-02-30'")),
    "dates that are not named": ("d,y\n2010-02-27,1\n2010-02-28,2\n", (), 3, "--dates d"),
    "unclear dates that are not named": ("d,y\n1.2.2010,1\n3.4.2010,2\n", (), 3, ("2010-05-31", "--exclude d")),
    "text in one cell of many": (numbers(30).replace("\n7,", "\n7x,"), (), 3, ("line 9", "'7x'", "29 numbers", "mend")),
    "a name with a comma": ('"a,b",y\nu,1\nv,2\n', (), 3, "--categorical '\"a,b\"'"),
    "a name with a blank": ("my col,y\nu,1\nv,2\n", (), 3, "--categorical 'my col'"),
    "a name with a quote": ("it's,y\nu,1\nv,2\n", (), 3, "--categorical 'it'\\''s'"),
    "an open quote in a list": (numbers(), ("--inputs", '"a,b'), 2, ("--inputs", "quote")),
    "text after a quote in a list": (numbers(), ("--inputs", '"a"b'), 2, ("--inputs", "quote")),
    "missing input": ("a,b,y\n1,2,3\nNone,5,6\n", (), 3, ("line 3", "'a'", "--impute median", "--drop-missing")),
    "missing after Excel": ("a,b,y\n#N/A,2,3\n4,5,6\n", (), 3, ("line 2", "'a'", "missing")),
    "impute and drop": (numbers(), ("--impute", "median", "--drop-missing"), 2, ("--impute", "--drop-missing")),
    "impute by the mean": (numbers(), ("--impute", "mean"), 2, ("'mean'", "median")),
    "nothing to impute from": ("a,y\n,1\nNA,2\n", ("--impute", "median"), 3, "same inputs"),
    "all targets missing": ("a,y\n1,None\n2,#N/A\n", ("--impute", "level"), 3, "missing target: 2"),
    "an endless list of ids": ("id,y\n" + "".join(f"k{i},{i}\n" for i in range(1500)), ("--categorical", "id"), 3, ("more than 1000", "--exclude")),
    "ids that are not named": ("id,a,y\n" + "".join(f"k{i},{i % 3},{i}\n" for i in range(50)), (), 3, ("identifier", "--id id")),
    "two ids": ("id,key,y\n" + "".join(f"k{i},l{i},{i}\n" for i in range(50)), (), 3, "--id id --exclude key"),
    "free text": ("a,note,y\n" + "".join(f"{i},words {i % 40},{i}\n" for i in range(60)), (), 3, ("mostly differ", "--exclude note")),
    "only decimal commas": ("a;b;y\n1,5;2,5;3,5\n2,5;1,5;4,5\n", (), 3, "decimal points"),
    "a date that is none": ("day,y\n" + "".join(f"2021-03-{i:02},{i}\n" for i in range(1, 29)) + "2021-02-30,3\n", (), 3,
                            ("28 dates and 1 other cell", "2021-02-30", "line 30")),
    "a named input of text": ("a,b,c,y\n1,2,x7,3\n2,3,x8,4\n3,1,q9,5\n", ("--inputs", "a,c"), 3, ("'x7'",)),
    "zero bytes": (b"a,b,y\n1,2,3\n4,\x00,6\n", (), 3, ("line 3", "zero byte")),
    "UTF-16": ("a,b,y\n1,2,3\n".encode("utf-16"), (), 3, "UTF-16"),
    "a spreadsheet": (b"PK\x03\x04" + bytes(60), (), 3, "spreadsheet"),
    "an open quote to the end": ('a,b,y\n1,2,3\n4,"5,6\n' + numbers(500), (), 3, ("line 3", "never closed")),
    "text after a quote": ('a,b,y\n1,"2"3,4\n', (), 3, ("line 2", "closing quote")),
    "infinite": ("a,b,y\n1,inf,3\n4,5,6\n", ("--impute", "median"), 3, ("line 2", "infinite")),
    "too large": ("a,b,y\n1,1e305,3\n4,5,6\n", (), 3, ("line 2", "too large")),
    "nothing after the header": ("a,b,y\n", ("--impute", "level"), 3, "no row of data"),
    "a byte order mark alone": (b"\xef\xbb\xbf", (), 3, "empty"),
    "a cut gzip": (gzip.compress(numbers().encode())[:-9], (), 3, "cut short"),
    "fractions as classes": ("a,y\n1,1.5\n2,2.5\n3,1.5\n", ("--task", "classification"), 3, ("'y'", "1.5")),
}


class HostileTablesTest(CliCase):
    def check_text(self, done):
        for text in (done.stdout, done.stderr):
            self.assertIsNone(STEERING.search(text), repr(text))
            for word in INTERNALS:
                self.assertNotIn(word, text)

    def test_every_table_is_refused_with_a_sentence(self):
        self.assertGreaterEqual(len(HOSTILE), 60)
        for name, (table, words, code, saying) in HOSTILE.items():
            with self.subTest(name):
                self.write("d.csv", table)
                last = self.refused(code, "fit", "d.csv", *words, saying=saying)
                self.assertIsNone(STEERING.search(last), repr(last))
                for word in INTERNALS:
                    self.assertNotIn(word, last)

    def test_other_verbs_refuse_them_too(self):
        for name in ("comment below the header", "escape in a cell", "ids that are not named", "missing input", "unknown dates",
                     "input that is excluded", "delimiter that is a word", "impute and drop"):
            table, words, code, saying = HOSTILE[name]
            self.write("d.csv", table)
            for verb in ("plan", "solve", "compare"):
                with self.subTest(name=name, verb=verb):
                    last = self.refused(code, verb, "d.csv", *words, saying=saying)
                    self.assertIsNone(STEERING.search(last), repr(last))

    def test_names_of_files_steer_nothing(self):
        name = "\x1b[31mred.csv"
        self.write(name, "a,y\n1,x\n")
        for words in (("fit", name), ("fit", "no\x1b[2J.csv"), ("info", "no\x1b[2J.mcr"), ("predict", "no\x1b[2J.mcr", name),
                      ("split", name, "--train-out", "\x1b[2J/a", "--test-out", "b"), ("fit", name, "--config", "\x1b[2J")):
            with self.subTest(words=words):
                done = self.mercer(*words, code=None)
                self.assertIn(done.returncode, (2, 3, 6))
                self.assertIn("\\x1b", done.stderr)
                self.check_text(done)

    def test_names_in_tables_steer_nothing(self):
        rng = random.Random(2)
        rows = "".join(f"{rng.random():.3f},{rng.random():.3f},{rng.choice(('u', chr(27) + '[1mv'))}\n" for _ in range(40))
        self.write("d.csv", '"\x1b[31ma","line\nend",\u009b2J\n' + rows)
        self.check_text(self.mercer("fit", "d.csv", "-m", "m.mcr", *QUICK))
        for words in (("info", "m.mcr"), ("info", "m.mcr", "--json"), ("evaluate", "m.mcr", "d.csv"), ("plan", "d.csv"), ("plan", "d.csv", "--json")):
            with self.subTest(words=words):
                self.check_text(self.mercer(*words))
        self.assertEqual(self.json("info", "m.mcr")["inputs"], ["\x1b[31ma", "line\nend"])
        self.assertIn("line\\x0aend", self.mercer("info", "m.mcr").stdout)

    def test_standard_input_is_one_file_only(self):
        self.refused(2, "fit", "-", "--validation", "-", "--trace", "t.csv", "-m", "m.mcr", stdin=numbers(), saying="standard input")

    def test_an_endless_configuration_is_refused(self):
        self.write("d.csv", numbers())
        self.refused(2, "fit", "d.csv", "--config", "/dev/zero", saying=("/dev/zero", "64 MB"))


class TableTest(CliCase):
    def test_from_the_table_to_predictions_by_the_messages_alone(self):
        self.write("houses.csv", houses())
        first = self.refused(3, "fit", "houses.csv", saying=("5 columns", "'Id': a different text in every row", "'sold': dates such as",
                                                             "'Neighbourhood': 3 different texts such as", "52 missing cells"))
        flags = re.search(r"add (--.*), and for", first).group(1)
        self.assertEqual(flags, "--categorical Neighbourhood,Style,Alley --dates sold --id Id")
        second = self.refused(3, "fit", "houses.csv", *shlex.split(flags), saying=("'Lot Area'", "--impute median"))
        self.assertIn("line 2", second)
        done = self.mercer("fit", "houses.csv", *shlex.split(flags), "--impute", "level", "-m", "m.mcr", *QUICK)
        self.assertIn("filled 52 missing cells: 'Lot Area' with", done.stderr)
        self.write("new.csv", houses(20, seed=5))
        done = self.mercer("predict", "m.mcr", "new.csv")
        self.assertEqual(len(rows_of(done.stdout)), 20)
        self.assertIn("missing cell", done.stderr)
        info = self.json("info", "m.mcr")
        self.assertEqual(info["id_column"], "Id")
        self.assertIn("Lot Area=missing", info["inputs"])
        self.assertIn("Alley=missing", info["inputs"])
        text = self.mercer("info", "m.mcr").stdout
        self.assertIn("sold (dates", text)
        self.assertRegex(text, r"Id +Id\n")

    def test_filled_cells_are_counted_and_filled_the_same(self):
        self.write("d.csv", "a,b,y\n" + "".join(f"{i},{'' if i % 5 == 0 else i % 7},{math.sin(i):.3f}\n" for i in range(40)))
        record = self.json("fit", "d.csv", "--impute", "median", "-m", "m.mcr", *QUICK)
        self.assertEqual(record["data"]["cells_filled"], 8)
        self.assertEqual(record["options"]["impute"], "median")
        self.write("gap.csv", "a,b\n3,\n")
        self.write("full.csv", "a,b\n3,3\n")  # 3 is the median of the 32 cells
        self.assertEqual(self.mercer("predict", "m.mcr", "gap.csv").stdout, self.mercer("predict", "m.mcr", "full.csv").stdout)
        self.assertEqual(self.json("evaluate", "m.mcr", "d.csv")["cells_filled"], 8)
        self.write("none.csv", "a,b\n3,None\n")
        self.refused(3, "predict", "m.mcr", "none.csv", "--drop-missing", "--delimiter", "tab", saying="'a'")
        self.mercer("fit", "full.csv", "--config", "r.json", code=2)

    def test_a_row_that_begins_with_a_hash_is_data(self):
        rows = "".join(f"{'#ff0000' if i % 2 else '#00ff00'},{i},{i % 5 + i % 2}\n" for i in range(30))
        self.write("d.csv", "# made by hand\ncolour,a,y\n" + rows)
        done = self.mercer("fit", "d.csv", "--categorical", "colour", "--task", "regression", "-m", "m.mcr", *QUICK)
        self.assertIn("skipped 1 comment line above the header", done.stderr)
        done = self.mercer("predict", "m.mcr", "d.csv")
        self.assertEqual(len(rows_of(done.stdout)), 30)
        self.assertIn("1 comment line", done.stderr)
        done = self.mercer("split", "d.csv", "--train-out", "a.csv", "--test-out", "b.csv")
        self.assertIn("comment line", done.stderr)
        both = (self.folder / "a.csv").read_text().splitlines()[1:] + (self.folder / "b.csv").read_text().splitlines()[1:]
        self.assertEqual(sorted(both), sorted(rows.splitlines()))

    def test_delimiters_are_found_or_given(self):
        self.write("d.csv", numbers())
        expected = self.json("fit", "d.csv", "-m", "m.mcr", *QUICK)["hyperparameters"]
        for name, separator in (("semicolon", ";"), ("tab", "\t"), ("pipe", "|"), ("comma", ","), (":", ":"), ("space", " ")):
            with self.subTest(separator=separator):
                self.write("e.csv", numbers(header=separator.join("aby"), separator=separator))
                record = self.json("fit", "e.csv", "--delimiter", name, "-m", "e.mcr", *QUICK)
                self.assertEqual(record["hyperparameters"], expected)
                self.assertEqual(record["data"]["delimiter"], separator)
                if separator in ";\t|,":
                    self.assertEqual(self.json("fit", "e.csv", "-m", "e.mcr", *QUICK)["hyperparameters"], expected)
                shown = self.mercer("predict", "m.mcr", "e.csv", "--delimiter", name).stdout
                self.assertEqual(shown, self.mercer("predict", "m.mcr", "d.csv").stdout)
                self.json("evaluate", "m.mcr", "e.csv", "--delimiter", name)
                self.mercer("solve", "e.csv", "--delimiter", name, "--quiet")
                self.mercer("split", "e.csv", "--delimiter", name, "--train-out", "a.csv", "--test-out", "b.csv")
        self.write("e.csv", "price, net;b;y\n" + "".join(f"{i};{i % 3};{math.sin(i):.3f}\n" for i in range(20)))
        self.assertEqual(self.json("fit", "e.csv", "-m", "e.mcr", *QUICK)["data"]["inputs"], ["price, net", "b"])

    def test_names_with_commas(self):
        self.write("d.csv", '"a,b",c,"say ""x""",y\n' + "".join(f"{i},{i % 3},{i % 4},{math.sin(i):.3f}\n" for i in range(20)))
        record = self.json("fit", "d.csv", "--inputs", '"a,b",c', "-m", "m.mcr", *QUICK)
        self.assertEqual(record["data"]["inputs"], ["a,b", "c"])
        (self.folder / "r.json").write_text(json.dumps(record))
        self.assertEqual(self.json("fit", "d.csv", "--config", "r.json", "-m", "m.mcr")["data"]["inputs"], ["a,b", "c"])
        record = self.json("fit", "d.csv", "--exclude", '"a,b"', "--categorical", 'c,say "x"', "-m", "m.mcr", *QUICK)
        self.assertEqual(record["data"]["inputs"][:3], ["c=0", "c=1", "c=2"])
        self.assertIn('"a,b"', self.mercer("fit", "--help").stdout.replace("\n", " "))

    def test_dates_are_days(self):
        days = {"2010-05-31": 14760, "2010/06/01 12:00": 14761.5, "2010-06-02T18:00:00Z": 14762.75}
        self.write("dates.csv", "d,y\n" + "".join(f"{text},{i}\n" for i, text in enumerate([*days, "2010-06-09"])))
        self.write("days.csv", "d,y\n" + "".join(f"{day},{i}\n" for i, day in enumerate([*days.values(), 14769])))
        one = self.json("fit", "dates.csv", "--dates", "d", "-m", "one.mcr", *QUICK)
        other = self.json("fit", "days.csv", "-m", "other.mcr", *QUICK)
        self.assertEqual(one["hyperparameters"], other["hyperparameters"])
        self.assertEqual(self.mercer("predict", "one.mcr", "dates.csv").stdout, self.mercer("predict", "other.mcr", "days.csv").stdout)
        self.write("bad.csv", "d\n2010-05-31\n31.05.2010\n")
        self.refused(3, "predict", "one.mcr", "bad.csv", saying=("line 3", "'d'", "year first"))

    def test_ratings_are_numbers_with_a_note(self):
        rng = random.Random(3)
        self.write("d.csv", "a,quality\n" + "".join(f"{rng.random():.4f},{3 + i % 6}\n" for i in range(60)))
        done = self.mercer("fit", "d.csv", "-m", "m.mcr", "--json", *QUICK)
        self.assertEqual(json.loads(done.stdout)["task"], "regression")
        self.assertIn("'quality' holds 6 different whole numbers from 3 to 8: learned as numbers (--task classification", done.stderr)
        done = self.mercer("fit", "d.csv", "-m", "m.mcr", "--task", "classification", "--json", *QUICK)
        self.assertEqual(json.loads(done.stdout)["classes"], list("345678"))
        self.assertNotIn("learned as numbers", done.stderr)
        done = self.mercer("fit", "d.csv", "-m", "m.mcr", "--task", "regression", *QUICK)
        self.assertNotIn("learned as numbers", done.stderr)
        for low, high in ((0, 1), (-1, 1), (1, 2)):
            self.write("d.csv", "a,c\n" + "".join(f"{rng.random():.4f},{rng.choice((low, high))}\n" for i in range(60)))
            self.assertEqual(self.json("fit", "d.csv", "-m", "m.mcr", *QUICK)["classes"], [str(low), str(high)])

    def test_a_column_that_counts_the_rows_is_noted(self):
        self.write("d.csv", "id,a,y\n" + "".join(f"{i + 1},{i % 7},{math.sin(i):.3f}\n" for i in range(20)))
        done = self.mercer("fit", "d.csv", "-m", "m.mcr", *QUICK)
        self.assertIn("column 'id' counts the rows; leave it out with --exclude id, or name it with --id id", done.stderr)
        for words in (("--exclude", "id"), ("--id", "id")):
            done = self.mercer("fit", "d.csv", "-m", "m.mcr", *words, *QUICK)
            self.assertNotIn("counts the rows", done.stderr)
            self.assertEqual(self.json("info", "m.mcr")["inputs"], ["a"])


class ReadingMemoryTest(CliCase):
    LIMIT = 100 << 20

    def peak(self, *words, rows=None):
        """(exit code, peak resident bytes, what was said); `rows` are written to standard input for ever."""
        report = self.folder / "report"
        process = subprocess.Popen(watched(report, *words), cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, stdin=subprocess.PIPE if rows else subprocess.DEVNULL)

        def feed():
            try:
                process.stdin.write(b"a,b,y\n")
                while True:
                    process.stdin.write(rows)
            except OSError:  # it has gone
                pass
        if rows:
            threading.Thread(target=feed, daemon=True).start()
        alarm = threading.Timer(TIMEOUT, process.kill)
        alarm.start()
        said = process.stderr.read().decode()
        process.wait(TIMEOUT)
        alarm.cancel()
        process.stderr.close()
        if rows:
            try:
                process.stdin.close()
            except OSError:  # what was left over has no reader
                pass
        code, peak = read_report(report)
        return code, peak, said

    def verbs(self, path):
        options = ("--memory", "100M")
        return (("fit", path, "-m", "m.mcr", *options), ("plan", path, *options), ("solve", path, *options),
                ("compare", path, *options), ("split", path, "--train-out", "a.csv", "--test-out", "b.csv", *options))

    def test_one_huge_field_is_refused(self):
        with gzip.open(self.folder / "d.csv.gz", "wb", 1) as file:
            file.write(b'a,b,y\n1,"')
            for _ in range(256):
                file.write(b"z" * (1 << 20))
            file.write(b'",3\n')
        self.write("m.csv", numbers())
        self.mercer("fit", "m.csv", "-m", "p.mcr", *QUICK)
        for words in (*self.verbs("d.csv.gz"), ("predict", "p.mcr", "d.csv.gz", "--memory", "100M"),
                      ("fit", "d.csv.gz", "--categorical", "b", "-m", "m.mcr", "--memory", "100M")):
            with self.subTest(words=words):
                code, peak, said = self.peak(*words)
                self.assertEqual(code, 4, said)
                self.assertIn("line 2: the row is longer than 7.50 MiB", said)
                self.assertIn("--memory", said)
                self.assertLess(peak, self.LIMIT)

    def test_rows_without_end_are_refused(self):
        rng = random.Random(4)
        rows = "".join(f"{rng.random():.6f},{rng.random():.6f},{rng.random():.6f}\n" for _ in range(5000)).encode()
        for words in self.verbs("-"):
            with self.subTest(words=words):
                code, peak, said = self.peak(*words, rows=rows)
                self.assertEqual(code, 4, said)
                self.assertRegex(said, r"the first [\d,]+ rows .*already fill the memory of 100.00 MiB")
                self.assertIn("--memory", said)
                self.assertLess(peak, self.LIMIT)

    def test_text_without_end_is_refused(self):
        code, peak, said = self.peak("fit", "-", "--memory", "100M", "-m", "m.mcr", rows=b"1,tall,3\n2,small,4\n" * 1000)
        self.assertEqual(code, 3, said)
        self.assertIn("--categorical b", said)
        self.assertLess(peak, self.LIMIT)
