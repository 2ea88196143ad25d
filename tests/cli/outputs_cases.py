"""What predict and evaluate write, and the files that mercer replaces."""

import csv
import gzip
import io
import json
import math
import os
import stat
import subprocess
import zlib

from harness import CliCase, read_csv, rows_of


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


class CarriedColumnsTest(CliCase):
    """--id, --with-inputs, --row-numbers."""

    DATA = ('house;a;colour;mean;note;b;y\n'
            '007;1.50;"red";x;"a, b";2;NA\n'
            '"5 ""high"" ";1e0;blue;;#N/A;3;1\n'
            '009;;red;z;;4;2\n'
            'NA; 3 ;blue;w;"two\nlines";5.;3\n')

    def setUp(self):
        super().setUp()
        rows = [f"{i / 7},{i * i % 11},{'red' if i % 3 else 'blue'},{i % 5 + 0.25}" for i in range(30)]
        self.write("train.csv", "a,b,colour,y\n" + "\n".join(rows) + "\n")
        self.mercer("fit", "train.csv", "--target", "y", "--categorical", "colour", "--train", "none", "-m", "m.mcr")
        self.write("d.csv", self.DATA)
        self.write("full.csv", self.DATA.replace("009;;", "009;2;"))

    def texts(self, text):
        rows = list(csv.reader(io.StringIO(text)))
        return rows[0], rows[1:]

    PREDICTED = ["mean", "sd_latent", "sd_obs", "q05", "q95", "error_bound", "error_estimate"]

    def test_id_columns_come_first_as_they_stand_in_the_file(self):
        plain = self.texts(self.mercer("predict", "m.mcr", "full.csv").stdout)
        self.assertEqual(plain[0], self.PREDICTED)
        head, rows = self.texts(self.mercer("predict", "m.mcr", "full.csv", "--id", "house").stdout)
        self.assertEqual(head, ["house", *self.PREDICTED])
        self.assertEqual([row[0] for row in rows], ["007", '5 "high" ', "009", "NA"])
        self.assertEqual([row[1:] for row in rows], plain[1])
        # Also columns that the model reads as numbers, and missing cells.
        head, rows = self.texts(self.mercer("predict", "m.mcr", "full.csv", "--id", "note,a").stdout)
        self.assertEqual(head, ["note", "a", *self.PREDICTED])
        self.assertEqual([row[:2] for row in rows],
                         [["a, b", "1.50"], ["#N/A", "1e0"], ["", "2"], ["two\nlines", "3"]])
        self.refused(3, "predict", "m.mcr", "full.csv", "--id", "hause", saying=("no column 'hause'", "'house'"))
        self.refused(2, "predict", "m.mcr", "full.csv", "--id", "house,house", saying=("'house'", "twice"))

    def test_the_id_of_the_model_is_carried_without_asking(self):
        text = (self.folder / "train.csv").read_text().splitlines()
        self.write("ids.csv", "\n".join(["house," + text[0]] + [f"h{i},{line}" for i, line in enumerate(text[1:])]))
        self.mercer("fit", "ids.csv", "--target", "y", "--categorical", "colour", "--id", "house", "--train", "none",
                    "-m", "i.mcr")
        head, rows = self.texts(self.mercer("predict", "i.mcr", "full.csv").stdout)
        self.assertEqual(head, ["house", *self.PREDICTED])
        self.assertEqual([row[0] for row in rows], ["007", '5 "high" ', "009", "NA"])
        self.assertEqual(self.texts(self.mercer("predict", "i.mcr", "full.csv", "--id", "b").stdout)[0],
                         ["b", *self.PREDICTED])
        self.assertEqual(self.texts(self.mercer("predict", "i.mcr", "full.csv", "--with-inputs").stdout)[0][:2],
                         ["house", "a"])
        # DATA without it is predicted all the same, and that is said.
        done = self.mercer("predict", "i.mcr", "train.csv")
        self.assertEqual(self.texts(done.stdout)[0], self.PREDICTED)
        self.assertIn("DATA has no column 'house'", done.stderr)

    def test_all_columns(self):
        done = self.mercer("predict", "m.mcr", "full.csv", "--with-inputs", "--id", "b")
        head, rows = self.texts(done.stdout)
        # The column of DATA that has a name of ours gets another, which is said.
        self.assertEqual(head, ["b", "house", "a", "colour", "input_mean", "note", "y", *self.PREDICTED])
        self.assertIn("the column 'mean' of DATA is written as 'input_mean'", done.stderr)
        self.assertEqual(rows[0][:7], ["2", "007", "1.50", "red", "x", "a, b", "NA"])
        self.assertEqual([row[0] for row in rows], ["2", "3", "4", "5."])
        self.write("clash.csv", "a,b,colour,mean,input_mean,row\n1,2,red,m,i,r\n")
        head, rows = self.texts(
            self.mercer("predict", "m.mcr", "clash.csv", "--with-inputs", "--row-numbers").stdout)
        self.assertEqual(head, ["row", "a", "b", "colour", "input_input_mean", "input_mean", "input_row",
                                *self.PREDICTED])
        self.assertEqual(rows[0][:7], ["1", "1", "2", "red", "m", "i", "r"])
        # Packed, and from standard input without a header.
        self.mercer("predict", "m.mcr", "full.csv", "--with-inputs", "-o", "p.csv.gz")
        with gzip.open(self.folder / "p.csv.gz", "rt") as file:
            self.assertEqual(len(list(csv.reader(file))), 5)
        self.write("bare.csv", "\n".join(f"{i},{i * i % 7},{i + 0.5}" for i in range(20)))
        self.mercer("fit", "bare.csv", "--train", "none", "-m", "bare.mcr")
        head, rows = self.texts(self.mercer("predict", "bare.mcr", "-", "--with-inputs", stdin="3,4\n5,6\n").stdout)
        self.assertEqual(head, ["x1", "x2", *self.PREDICTED])
        self.assertEqual([row[:2] for row in rows], [["3", "4"], ["5", "6"]])

    def test_row_numbers_find_what_was_left_out(self):
        commented = "# a comment\n" + self.DATA.replace("009;", "\n009;")
        self.write("c.csv", commented)
        for name in ("d.csv", "c.csv"):
            head, rows = self.texts(
                self.mercer("predict", "m.mcr", name, "--drop-missing", "--id", "house").stdout)
            self.assertEqual(head[:2], ["row", "house"])
            self.assertEqual([row[:2] for row in rows], [["1", "007"], ["2", '5 "high" '], ["4", "NA"]])
        head, rows = self.texts(self.mercer("predict", "m.mcr", "full.csv", "--row-numbers").stdout)
        self.assertEqual(head, ["row", *self.PREDICTED])
        self.assertEqual([row[0] for row in rows], ["1", "2", "3", "4"])

    def test_in_json_they_stand_in_an_object_of_their_own(self):
        record = self.json("predict", "m.mcr", "d.csv", "--drop-missing", "--with-inputs")
        self.assertEqual(record["row"], [1, 2, 4])
        self.assertEqual(record["n"], 3)
        self.assertEqual(len(record["mean"]), 3)
        self.assertEqual(record["carried"]["house"], ["007", '5 "high" ', "NA"])
        self.assertEqual(record["carried"]["mean"], ["x", "", "w"])
        self.assertEqual(record["carried"]["note"], ["a, b", "#N/A", "two\nlines"])
        self.assertEqual(list(record["carried"]), ["house", "a", "colour", "mean", "note", "b", "y"])
        self.write("latin.csv", "a,b,colour,n\n1,2,red,M\xfcller\n".encode("latin-1"))
        done = self.mercer("predict", "m.mcr", "latin.csv", "--id", "n", "--json", code=3)
        self.assertIn("line 2, column 'n'", done.stderr)
        self.assertIn("UTF-8", done.stderr)
        done = self.mercer("predict", "m.mcr", "latin.csv", "--id", "n", "-o", "out.csv")
        self.assertIn("M\xfcller".encode("latin-1"), (self.folder / "out.csv").read_bytes())
        self.assertNotIn("carried", self.json("predict", "m.mcr", "d.csv", "--drop-missing"))


class StreamedJsonTest(CliCase):
    """predict --json: memory does not depend on the rows, and nothing is printed before all is well."""

    def many(self, name, rows):
        with open(self.folder / name, "w", encoding="utf-8") as out:
            out.write("x1,x2,x3,x4,x5\n")
            out.writelines(f"{i % 97},{i % 89},{i % 83},1,2\n" for i in range(rows))

    def setUp(self):
        super().setUp()
        self.generate("t.csv", "friedman", "-n", 40, "-d", 5)
        self.mercer("fit", "t.csv", "--train", "none", "-m", "m.mcr")

    def test_it_is_what_the_table_is(self):
        self.many("d.csv", 9000)
        table = rows_of(self.mercer("predict", "m.mcr", "d.csv").stdout)
        record = self.json("predict", "m.mcr", "d.csv")
        for name in table[0]:
            self.assertEqual(record[name], [float(row[name]) for row in table], name)
        self.has(record, "n model output largest_error_bound variance clamped_variances matvecs seconds "
                         "peak_rss_bytes")

    def test_memory_does_not_grow_with_the_rows(self):
        peaks = []
        for rows in (20_000, 320_000):
            self.many("d.csv", rows)
            command = [os.environ["MERCER_PROGRAM"], "predict", "m.mcr", "d.csv", "--json", "--id", "x1"]
            with open(self.folder / "out.json", "w", encoding="utf-8") as out:
                process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=subprocess.DEVNULL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            # Line by line: a child's peak begins with the memory of this process.
            with open(self.folder / "out.json", encoding="utf-8") as file:
                texts = sum(line.startswith('      "') for line in file)
                self.assertEqual(texts, rows)
            self.assertGreater(os.path.getsize(self.folder / "out.json"), 100 * rows)
            peaks.append(usage.ru_maxrss * 1024)
        # Held in memory the larger one took 155 MB more; of its text of 50 MB, 16 MiB are kept.
        self.assertLess(peaks[1] - peaks[0], 40e6)

    def test_a_failure_in_the_middle_prints_no_half_object(self):
        self.many("d.csv", 9000)
        with open(self.folder / "d.csv", "a", encoding="utf-8") as out:
            out.write("1,2,oops,4,5\n")
        done = self.mercer("predict", "m.mcr", "d.csv", "--json", code=3)
        self.assertNotIn("\"mean\"", done.stdout)
        self.assertIn("line 9002", done.stderr)


class HostileOutputsTest(CliCase):
    """Odd names, odd cells and odd places: each is written as it is or refused in one line."""

    def setUp(self):
        super().setUp()
        self.write("t.csv", "a,b,y\n" + "".join(f"{i / 9},{i * i % 13},{1 + i % 7 + i / 50}\n" for i in range(40)))
        self.mercer("fit", "t.csv", "--train", "none", "--task", "regression", "-m", "m.mcr")

    def test_cells_come_back_as_they_were(self):
        cells = ["plain", "", "0010", "1e5", "-", "?", "null", "NaN", "inf", "a,b", 'say "hi"', "two\nlines", "tab\there",
                 " blanks ", "#hash", ";", "äöü €", "\u202ereversed", "=1+1", "'", '"', '""', ",", "\x1b[31mred\x1b[0m",
                 "x" * 5000, "2024-02-30", "TRUE", "1,234.5", "0x1F", "𝄞"]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(["key", "a", "b"])
        for i, cell in enumerate(cells):
            writer.writerow([cell, i, i + 1])
        self.write("d.csv", out.getvalue())
        rows = rows_of(self.mercer("predict", "m.mcr", "d.csv", "--id", "key").stdout)
        self.assertEqual([row["key"] for row in rows], cells)
        record = json.loads(self.mercer("predict", "m.mcr", "d.csv", "--id", "key", "--json").stdout)
        self.assertEqual(record["carried"]["key"], cells)
        # What was written can be read again by mercer, too.
        self.mercer("predict", "m.mcr", "d.csv", "--with-inputs", "-o", "p.csv")
        again = rows_of(self.mercer("predict", "m.mcr", "p.csv", "--id", "key").stdout)
        self.assertEqual([row["key"] for row in again], cells)

    def test_names_of_columns(self):
        names = ["mean", "sd_obs", "q05", "error_bound", "input_q05", "n", "model", "seconds", "carried", "row", "label",
                 "sample_1", "with, comma", 'with "quote"', "Größe", " "[:0] + "x y"]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*names, "a", "b"])
        writer.writerow([*[f"v{i}" for i in range(len(names))], 1, 2])
        self.write("d.csv", out.getvalue())
        for words in (("--with-inputs",), ("--with-inputs", "--row-numbers"), ("--with-inputs", "--samples", 1)):
            text = self.mercer("predict", "m.mcr", "d.csv", *words).stdout
            head = next(csv.reader(io.StringIO(text)))
            self.assertEqual(len(set(head)), len(head), head)
            values = rows_of(text)[0]
            self.assertEqual([value for value in values.values() if value and value.startswith("v")],
                             [f"v{i}" for i in range(len(names))])
            record = self.json("predict", "m.mcr", "d.csv", *words)
            self.assertEqual(record["n"], 1)
            self.assertEqual([record["carried"][name] for name in names], [[f"v{i}"] for i in range(len(names))])

    def test_many_columns(self):
        names = [f"c{i}" for i in range(3000)]
        self.write("d.csv", ",".join(["a", "b", *names]) + "\n" + "".join(
            ",".join(["1", "2", *[f"{i}:{j}" for j in range(3000)]]) + "\n" for i in range(40)))
        rows = rows_of(self.mercer("predict", "m.mcr", "d.csv", "--with-inputs").stdout)
        self.assertEqual((rows[39]["c2999"], rows[0]["c17"]), ("39:2999", "0:17"))
        self.assertEqual(self.json("predict", "m.mcr", "d.csv", "--with-inputs")["carried"]["c2999"][39], "39:2999")

    def test_places(self):
        os.symlink("nowhere/p.csv", self.folder / "dangling")
        os.symlink("loop", self.folder / "loop")
        (self.folder / "folder").mkdir()
        for name, words in (("dangling", "No such file"), ("loop", "symbolic links"), ("folder", "folder"),
                            ("no/such/p.csv", "No such file"), ("m.mcr", "being read")):
            self.refused(2, "predict", "m.mcr", "t.csv", "-o", name, saying=words)
        os.symlink("/dev/null", self.folder / "null")
        self.mercer("predict", "m.mcr", "t.csv", "-o", "null")
        self.assertTrue((self.folder / "null").is_symlink())
        # A link to the data is the data.
        os.symlink("t.csv", self.folder / "link.csv")
        self.refused(2, "predict", "m.mcr", "t.csv", "-o", "link.csv", saying="being read")
        self.refused(2, "fit", "t.csv", "-m", "link.csv", saying="being read")

    def test_a_temporary_folder_that_takes_nothing(self):
        self.write("d.csv", "a,b,c\n" + f"1,2,{'x' * 1000}\n" * 20_000)
        done = self.mercer("predict", "m.mcr", "d.csv", "--id", "c", "--json", "--variance", "none",
                           env={**os.environ, "TMPDIR": "/proc"}, code=1)
        self.assertNotIn("carried", done.stdout)
        self.assertIn("/proc", done.stderr)
        self.assertIn("--output", done.stderr)

    def test_forged_models(self):
        self.mercer("fit", "t.csv", "--train", "none", "--task", "regression", "--log-target", "-m", "log.mcr")
        good = (self.folder / "log.mcr").read_bytes()
        for old, new in ((b'"log_target":true', b'"log_target":1   '), (b'"gaussian"', b'"poisson" '),
                         (b'"mean_only":false', b'"mean_only":true ')):
            self.assertIn(old, good)
            self.write("bad.mcr", self.resealed(good.replace(old, new)))
            self.refused(6, "predict", "bad.mcr", "t.csv")

    def resealed(self, data):
        """The same file with the checksum of its header made right (docs/model-file.md)."""
        end = 32 + int.from_bytes(data[24:32], "little")
        return data[:12] + zlib.crc32(data[16:end]).to_bytes(4, "little") + data[16:]

    def test_targets_and_their_logarithms(self):
        for name, targets, code in (("tiny", (5e-324, 1e-300, 1e-10), 0), ("huge", (1e300, 1e10, 1), 0),
                                    ("negative zero", (-0.0, 1, 2), 3), ("zero", (0, 1, 2), 3), ("constant", (2, 2, 2), 3),
                                    ("close", (1, 1 + 2**-52, 1), 0), ("below", (3, -1e-300, 2), 3)):
            with self.subTest(name):
                self.write("d.csv", "a,y\n" + "".join(f"{i},{targets[i % 3]!r}\n" for i in range(12)))
                done = self.mercer("fit", "d.csv", "--log-target", "--train", "none", "-m", "d.mcr", code=None)
                self.assertIn(done.returncode, (code, 5) if code == 0 else (code,), done.stderr)
                if done.returncode == 0 and name in ("tiny", "huge"):  # the mean is beyond all numbers
                    self.refused(3, "predict", "d.mcr", "d.csv", saying=("line 2", "logarithm", "--variance none"))
                    self.mercer("predict", "d.mcr", "d.csv", "--variance", "none")
                elif done.returncode == 0:
                    values = read_csv(self.mercer("predict", "d.mcr", "d.csv").stdout)
                    for column in values.values():
                        self.assertTrue(all(math.isfinite(v) and v >= 0 for v in column))
