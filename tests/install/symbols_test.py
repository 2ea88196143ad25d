#!/usr/bin/env python3
"""What libmercer.so exports: every function of the C header, C++ names that an installed header
declares, and nothing else: no internals, nothing of the libraries that were compiled into it.

Usage: symbols_test.py LIBRARY INCLUDE_FOLDER
"""

import pathlib
import re
import subprocess
import sys


def strip_templates(name):
    """mercer::Registry<mercer::X>::find(a<b>) -> mercer::Registry::find"""
    out, depth = "", 0
    name = re.sub(r"operator(<=>|<<|>>|<=|>=|<|>|->|\(\))", "operator", name)
    for letter in name:
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif letter in "([" and depth == 0:
            break
        elif depth == 0:
            out += letter
    return out


def main():
    library, include = sys.argv[1], pathlib.Path(sys.argv[2])
    lines = subprocess.run(["nm", "-D", "--defined-only", "-C", library], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    text = "\n".join(path.read_text() for path in include.rglob("*.h*"))
    declared = set(re.findall(r"\w+", re.sub(r"//.*", "", text)))
    c_functions = set(re.findall(r"\b(mercer_\w+)\(", re.sub(r"/\*.*?\*/", "", (
        include / "mercer/c/mercer.h").read_text(), flags=re.S)))
    faults, exported_c, names = [], set(), 0
    for line in lines:
        symbol = line.split(" ", 2)[2]
        names += 1
        if re.fullmatch(r"mercer_\w+", symbol):
            exported_c.add(symbol)
            continue
        plain = re.sub(r"^(vtable|typeinfo name|typeinfo|VTT|guard variable|non-virtual thunk|"
                       r"construction vtable|virtual thunk) (for|to) ", "", symbol)
        plain = strip_templates(re.sub(r"\[abi:\w+\]", "", plain)).split(" ")[-1]
        parts = [part.lstrip("~") for part in plain.split("::") if part]
        if not parts or parts[0] != "mercer":
            faults.append(f"not of mercer: {symbol}")
        elif "detail" in parts or "{lambda" in plain or "(anonymous" in plain:
            faults.append(f"an internal: {symbol}")
        elif any(part not in declared and not part.startswith("operator") for part in parts):
            faults.append(f"declared in no installed header: {symbol}")
    faults += [f"declared in mercer/c/mercer.h but not exported: {name}"
               for name in sorted(c_functions - exported_c)]
    faults += [f"exported but not declared in mercer/c/mercer.h: {name}"
               for name in sorted(exported_c - c_functions)]
    for each in faults[:50]:
        print(each)
    print(f"{names} symbols, {len(exported_c)} of them C functions, {len(faults)} faults")
    return 1 if faults or not exported_c or names < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
