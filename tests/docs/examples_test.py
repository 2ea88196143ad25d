"""Examples in headers and pages compile: examples_test.py SOURCE COMPILER [FLAG...].

An example of a header is a paragraph of its opening comment whose lines are indented (`//   code;`). An example of a
page is a block marked ```cpp. All of them go into one translation unit, each in a namespace of its own under the name
and line of its file, and the compiler checks it without generating code.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
COMPILER = sys.argv[2:]
PAGES = ["README.md", "docs/embedding.md"]
LEAST = 8  # examples that there are at least

# What an example takes for granted.
GIVEN = {
    "mercer/core/options.hpp": "struct CgOptions { double tolerance = 1; std::optional<int> window; };",
    "mercer/core/registry.hpp": "struct LikelihoodInfo { std::string_view name, summary; };\n"
                                "LikelihoodInfo gaussian_info();\nLikelihoodInfo poisson_info();",
    "mercer/core/stop.hpp": "extern const linalg::LinearOperator& k;\nextern Matrix x, y;",
    "mercer/kernels/kernel.hpp": "const Vector theta;",
    "mercer/models/predictor.hpp": "const Matrix inputs;",
    "mercer/optim/replay.hpp": "const std::vector<optim::Evaluation> read_from_checkpoint;\n"
                               "const optim::Objective expensive;\nconst Vector start;\n"
                               "void write_checkpoint(const optim::ReplayLog&);",
    "cli/arguments.hpp": "extern cli::Arguments& arguments;\nextern models::FitOptions& options;",
}


def paragraphs(text):
    """(line number, lines without their slashes) of the paragraphs of a header's opening comment."""
    out, number = [(1, [])], 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("//"):
            break
        if line.strip() == "//":
            out.append((number + 1, []))
        else:
            out[-1][1].append(line[2:])
    return out


def is_code(lines):
    if not lines or not all(line.startswith("   ") for line in lines):
        return False
    first = re.sub(r"\s//.*", "", lines[0]).rstrip()
    return first.endswith((";", "{")) or first.lstrip().startswith(("template", "#include"))


def header_examples():
    for folder in ("mercer", "cli"):
        for path in sorted((SOURCE / folder).rglob("*.hpp")):
            name = path.relative_to(SOURCE).as_posix()
            if "/detail/" not in name:
                for line, lines in paragraphs(path.read_text()):
                    if is_code(lines):
                        yield name, line, lines


def page_examples():
    for name in PAGES:
        path = SOURCE / name
        if not path.exists():
            continue
        text = path.read_text()
        for block in re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S):
            yield name, text[:block.start()].count("\n") + 2, block.group(1).splitlines()


def wrapped(number, name, line, lines):
    """(includes, the rest in a namespace), with what its room and GIVEN provide."""
    includes = [text.strip() for text in lines if text.strip().startswith("#include")]
    body = ["" if text.strip().startswith("#include") else text for text in lines]
    room = name.split("/")[1] if name.startswith("mercer/") and name.count("/") == 2 else ""
    if name.startswith("cli/"):
        room = "cli"
        includes.append(f'#include "{name}"')
    outside = re.search(r"^\s*(template|int main|[\w<>:&]+ \w+\(.*\) \{)", "\n".join(body), re.M)
    code = f'#line {line} "{name}"\n' + "\n".join(body) + "\n"
    if not outside:
        code = f"[[maybe_unused]] void example() {{\n{code}}}\n"
    opening = "using namespace mercer;\n" + (f"using namespace mercer::{room};\n" if room not in ("", "core") else "")
    return includes, f"namespace example_{number} {{\n{opening}{GIVEN.get(name, '')}\n{code}}}\n"


class ExamplesTest(unittest.TestCase):
    def test_examples_compile(self):
        examples = [*header_examples(), *page_examples()]
        self.assertGreaterEqual(len(examples), LEAST, [example[:2] for example in examples])
        found = {name for name, _, _ in examples}
        self.assertEqual([name for name in (*GIVEN, "README.md") if name not in found], [], "no example is found there")
        includes, bodies = ['#include "mercer/mercer.hpp"'], []
        for number, example in enumerate(examples):
            heads, body = wrapped(number, *example)
            includes += [head for head in heads if head not in includes]
            bodies.append(body)
        with tempfile.TemporaryDirectory() as folder:
            unit = Path(folder) / "examples.cpp"
            unit.write_text("\n".join(includes + bodies))
            done = subprocess.run([*COMPILER, "-std=c++20", "-fsyntax-only", f"-I{SOURCE}", str(unit)],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[:5000])
        print(f"{len(examples)} examples of {len(found)} files compile")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
