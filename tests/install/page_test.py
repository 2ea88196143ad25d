#!/usr/bin/env python3
"""The examples on docs/embedding.md are the files that tests/install builds: below each comment
<!-- FILE --> stands a block with the text of that file.

Usage: page_test.py SOURCE_FOLDER
"""

import pathlib
import re
import sys


def main():
    source = pathlib.Path(sys.argv[1])
    page = (source / "docs/embedding.md").read_text()
    blocks = re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```\n", page, flags=re.S)
    stale = [name for name, text in blocks if (source / name).read_text() != text]
    for name in stale:
        print(f"docs/embedding.md: the block of {name} is not the text of that file")
    print(f"{len(blocks)} examples, {len(stale)} stale")
    return 1 if stale or len(blocks) != 3 else 0


if __name__ == "__main__":
    sys.exit(main())
