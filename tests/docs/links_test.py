"""Links and file names in pages lead somewhere: links_test.py SOURCE.

Relative links of every page, with their anchors, and files of the tree that a page names in backquotes.
"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
ROOMS = "mercer|cli|tests|scripts|experiments|docs|examples|fuzz|bench"


def pages():
    for pattern in ("*.md", "docs/**/*.md", "experiments/**/*.md"):
        yield from sorted(SOURCE.glob(pattern))


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    plain = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).replace("`", "").strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text):
        target, _, anchor = (link[0] or link[1]).partition("#")
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path = page.parent / target if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            yield link[0] or link[1]
    for name in re.findall(rf"`((?:{ROOMS})/[\w/.\-]+\.(?:hpp|cpp|py|md|sh))`", text):
        if "NAME" not in name and not (SOURCE / name).exists():
            yield name


class LinksTest(unittest.TestCase):
    def test_links_lead_somewhere(self):
        found = {page.relative_to(SOURCE).as_posix(): list(broken(page)) for page in pages()}
        self.assertGreater(len(found), 20)
        self.assertEqual({page: links for page, links in found.items() if links}, {})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
