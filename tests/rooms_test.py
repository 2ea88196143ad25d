#!/usr/bin/env python3
"""The house rules that a compiler does not check.

1. A room includes only the rooms it names in DEPENDS, and what those depend on.
2. The library does not include the program, the tests or the benchmarks.
3. No source file is longer than 500 lines.
4. No message of the library says `--flag`: it names an option by its field in backquotes, `max_iterations`, and the command line
   adds the dashes.
5. The name of an operator, a solver, a preconditioner, a trainer or an inference method is a string literal only in the files of its entry, so that
   deleting its line in the registry removes it everywhere. ALSO_NAMED lists where the same word means something else.
6. No folder of a room has more than 45 files.
7. A test writes its files into a TemporaryFolder (tests/testing/temporary_folder.hpp): the cases of one test run side by side, and
   a fixed name would be the same file for all of them.

Usage: rooms_test.py [SOURCE_FOLDER]; exits 0 when all hold, 1 with one line per breach.
"""

import pathlib
import re
import sys

MAX_LINES = 500
MAX_FILES = 45
SOURCE_FOLDERS = ["mercer", "cli", "tests", "bench", "fuzz", "examples"]
KEYWORDS = {"SOURCES", "DEPENDS", "LIBRARIES", "PRIVATE_LIBRARIES"}


def read_rooms(source):
    """{room: rooms it names in DEPENDS}, from the mercer_room(...) calls."""
    rooms = {}
    for path in sorted(source.glob("mercer/*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", path.read_text())
        for call in re.findall(r"\bmercer_room\s*\(([^)]*)\)", text):
            words = call.split()
            name, keyword = words[0], None
            rooms[name] = []
            for word in words[1:]:
                if word in KEYWORDS:
                    keyword = word
                elif keyword == "DEPENDS":
                    rooms[name].append(word)
    return rooms


def reachable(rooms, name, path=()):
    """The room itself and all below it; a circle is an error."""
    if name in path:
        raise SystemExit("rooms depend on each other in a circle: " + " -> ".join([*path, name]))
    if name not in rooms:
        raise SystemExit(f"room '{path[-1]}' depends on '{name}', which is not a room")
    below = {name}
    for other in rooms[name]:
        below |= reachable(rooms, other, (*path, name))
    return below


def sources(source, folder):
    for path in sorted((source / folder).rglob("*")):
        if path.suffix in {".cpp", ".hpp"}:
            yield path, path.read_text().splitlines()


def check_includes(source, rooms):
    for name in rooms:
        allowed = reachable(rooms, name)
        for path, lines in sources(source, f"mercer/{name}"):
            for number, line in enumerate(lines, 1):
                match = re.match(r'\s*#\s*include\s+["<]((?:mercer|%s)/[^">]*)[">]'
                                 % "|".join(SOURCE_FOLDERS[1:]), line)
                if not match:
                    continue
                parts = match.group(1).split("/")
                if parts[0] != "mercer" or len(parts) < 3 or parts[1] not in allowed:
                    yield (f"{path.relative_to(source)}:{number}: room '{name}' may not include "
                           f"{match.group(1)}; it may use: {', '.join(sorted(allowed))}")


def check_lengths(source):
    for folder in SOURCE_FOLDERS:
        for path, lines in sources(source, folder):
            if len(lines) > MAX_LINES:
                yield f"{path.relative_to(source)}: {len(lines)} lines, more than {MAX_LINES}"


def check_every_folder_is_a_room(source, rooms):
    for path in sorted((source / "mercer").iterdir()):
        if path.is_dir() and path.name not in rooms and list(path.glob("*.cpp")):
            yield f"mercer/{path.name} has sources but no mercer_room({path.name} ...)"


def check_flags_in_messages(source):
    """String literals under mercer/ with --word in them."""
    literal = re.compile(r'"(?:[^"\\]|\\.)*"')
    for path, lines in sources(source, "mercer"):
        name = str(path.relative_to(source))
        for number, line in enumerate(lines, 1):
            code = re.split(r"(?<![:\"])//(?=\s)", line)[0]  # a comment begins with a blank
            if not any(re.search(r"(?:^\"|[\s(\[|,;'])--[a-z]", text) for text in literal.findall(code)):
                continue
            yield f"{name}:{number}: a message of the library says --flag; write `field` instead"


# Entries of the registries: (folder, type of the entry, what asks for it instead of its name).
REGISTRIES = [
    ("mercer/operators", "OperatorInfo", "operators/registry.hpp"),
    ("mercer/krylov", "SolverInfo", "krylov/registry.hpp or inference/solvers.hpp"),
    ("mercer/preconditioners", "PreconditionerInfo", "preconditioners/registry.hpp, or the entry itself"),
    ("mercer/training", "TrainerInfo", "the properties in training/training.hpp"),
    ("mercer/inference", "InferenceInfo", "the properties in inference/inference.hpp"),
]

# Solvers that are no entry of krylov's registry, and the file that names them.
OTHER_SOLVERS = {"cholesky": {"choice"}, "kcg": {"kernel_cg"}}

# Files, by stem, in which a word that is also the name of an entry means something else.
ALSO_NAMED = {
    "exact": {  # a way to find variances; in `simulate` a way to draw; in messages of `regularized` K itself
        "options", "variance_plan", "function_query", "predictor", "simulate", "plan", "regularized",
        "approximation_check", "compare_approximations",
        "evidence"},  # and what an evidence is
    "vecchia": {  # a way to find variances or to draw; a preconditioner; a word of messages and streams of random numbers
        "options", "variance_plan", "function_query", "fit", "simulate", "plan", "vecchia", "point_set_problem"},
    "cholesky": {  # how a likelihood was found
        "evidence", "laplace_posterior", "likelihood_value", "training"},
    "rpcholesky": {"sparse_setup"},  # a choice of base points
    "subset": {"options", "search"},  # rows that hyperparameters are first learned from
    "cg": {"gmres", "fcg", "ulisse"},  # messages that say which solver takes an option
    "fcg": {"gmres", "cg", "ulisse"},
}


def entry_files(source, folder, info):
    """{name of an entry: stems of the files that declare it}, from the NAME_info() functions."""
    files = {}
    for path, lines in sources(source, folder):
        for name in re.findall(info + r' \w+_info\(\) \{\s*return \{\s*\.name = "([^"]+)"', "\n".join(lines)):
            files.setdefault(name, set()).add(path.stem)
    return files


def check_entry_names(source):
    owners, instead = {}, {}
    for folder, info, ask in REGISTRIES:
        files = entry_files(source, folder, info)
        if not files:
            yield f"{folder}: nothing describes itself by a {info} NAME_info()"
        for name, stems in files.items():
            if name == "none":  # what many options say
                continue
            owners.setdefault(name, set()).update(stems)
            instead.setdefault(name, ask)
    for name, stems in OTHER_SOLVERS.items():
        owners.setdefault(name, set()).update(stems)
        instead.setdefault(name, "inference/solvers.hpp")
    for path, lines in sources(source, "mercer"):
        for number, line in enumerate(lines, 1):
            for name in re.findall(r'"([^"]*)"', line.split("//")[0]):
                if name not in owners or path.stem in owners[name] | ALSO_NAMED.get(name, set()):
                    continue
                yield (f'{path.relative_to(source)}:{number}: "{name}" is named outside '
                       f"{' and '.join(sorted(owners[name]))}; ask {instead[name]} instead")


def check_sizes(source):
    for path in sorted((source / "mercer").rglob("*")):
        if path.is_dir():
            count = sum(each.is_file() for each in path.iterdir())
            if count > MAX_FILES:
                yield f"{path.relative_to(source)}: {count} files, more than {MAX_FILES}"


def check_temporary_files(source):
    for path, lines in sources(source, "tests"):
        if path.stem == "temporary_folder":
            continue
        for number, line in enumerate(lines, 1):
            if re.search(r"\bTempDir\(|\btemp_directory_path\(|\bmkdtemp\(|\bmkstemp\(", line):
                yield f"{path.relative_to(source)}:{number}: write into a TemporaryFolder instead"


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    rooms = read_rooms(source)
    if not rooms:
        raise SystemExit(f"no mercer_room(...) found under {source}")
    breaches = [*check_includes(source, rooms), *check_lengths(source),
                *check_every_folder_is_a_room(source, rooms), *check_flags_in_messages(source),
                *check_entry_names(source), *check_sizes(source), *check_temporary_files(source)]
    for breach in breaches:
        print(breach)
    print(f"{len(rooms)} rooms, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
