#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every link of README.md and docs/ leads to a file of this repository that exists, and to a heading in it.

links.py ROOT prints what does not and exits with 1. Addresses of other places are not looked at.
"""
import pathlib
import re
import sys


def text_lines(page):
    """The lines of a page, numbered, without what stands in blocks of code."""
    in_code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith("    "):
            yield number, line


def anchors(page):
    """The names by which GitHub knows the headings of a page."""
    headings = (re.match(r"#+ (.*)", line) for _, line in text_lines(page))
    return {re.sub(r"[^\w\- ]", "", found[1].strip().lower()).replace(" ", "-") for found in headings if found}


def wrong_links(page):
    for number, line in text_lines(page):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not target.exists():
                yield f"{page}:{number}: no such file: {link}"
            elif anchor and anchor not in anchors(target):
                yield f"{page}:{number}: no such heading: {link}"


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = [line for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] for line in wrong_links(page)]
    print("\n".join(wrong) or "every link leads somewhere")
    return 1 if wrong else 0


sys.exit(main())
