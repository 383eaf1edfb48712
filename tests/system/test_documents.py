# SPDX-License-Identifier: GPL-2.0-or-later
"""What the documents show is what the programs do."""

from document import Site, is_as_shown, run
from harness import check, main


def test_comparison():
    check(is_as_shown(["a", "...", "d"], ["a", "b", "c", "d"]) and is_as_shown(["...", "a"], ["a"]), "any lines")
    check(is_as_shown(["done in 0.02 s"], ["done in 1.30 s"]), "times")
    check(not is_as_shown(["a"], ["a", "b"]) and not is_as_shown(["a", "b"], ["a"]) and not is_as_shown([], ["a"]), "too much")
    check(not is_as_shown(["4 ports"], ["5 ports"]) and not is_as_shown(["...", "d", "e"], ["d", "f"]), "other lines")


def test_tutorial():
    with Site() as site:
        run(site, "doc/tutorial.md")


if __name__ == "__main__":
    main()
