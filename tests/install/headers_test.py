#!/usr/bin/env python3
"""The installed headers: none needs the JSON library, each marks what the shared library exports, and
each compiles on its own. Eigen, the first include of nearly all of them, is precompiled.

Usage: headers_test.py INCLUDE_FOLDER CXX
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

UNMARKED = {"mercer/mercer.hpp", "mercer/core/export.hpp", "mercer/core/types.hpp"}


def main():
    include, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    headers = sorted(str(path.relative_to(include)) for path in include.rglob("*.h*"))
    faults = []
    if "mercer/mercer.hpp" not in headers or "mercer/c/mercer.h" not in headers:
        faults.append("mercer/mercer.hpp or mercer/c/mercer.h is not installed")
    for name in headers:
        text = (include / name).read_text()
        if "nlohmann" in text:
            faults.append(f"{name} names nlohmann")
        if name.endswith(".hpp") and name not in UNMARKED and (
                len(re.findall("^MERCER_API_BEGIN$", text, re.M)) != 1
                or len(re.findall("^MERCER_API_END$", text, re.M)) != 1):
            faults.append(f"{name} has no MERCER_API_BEGIN and MERCER_API_END (mercer/core/export.hpp)")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # A JSON library that the system has is not to be found.
        (folder / "nlohmann").mkdir()
        for name in ("json.hpp", "json_fwd.hpp"):
            (folder / "nlohmann" / name).write_text("#error an installed header includes nlohmann/json\n")
        flags = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
                 "-Werror", f"-I{folder}", f"-I{include}",
                 "-isystem", "/usr/include/eigen3"]
        (folder / "eigen.hpp").write_text("#include <Eigen/Core>\n")
        subprocess.run([*flags, "-x", "c++-header", str(folder / "eigen.hpp"), "-o",
                        str(folder / "eigen.hpp.gch")], check=True)

        def fault(name):
            source = folder / (re.sub(r"\W", "_", name) + ".cpp")
            source.write_text(f'#include "{name}"\n#include "{name}"\n')
            done = subprocess.run([*flags, "-include", str(folder / "eigen.hpp"), "-fsyntax-only",
                                   str(source)], capture_output=True, text=True, check=False)
            return "" if done.returncode == 0 else f"{name} does not compile on its own:\n{done.stderr}"

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            faults += [each for each in pool.map(fault, headers) if each]
    for each in faults:
        print(each)
    print(f"{len(headers)} headers, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
