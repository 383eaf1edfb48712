# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands in the documents print what the documents show."""

import os
import shutil

from document import as_markdown, is_as_shown, run
from harness import Skip, check, check_equal, main, program


def test_comparison():
    check(is_as_shown(["a", "...", "d"], ["a", "b", "c", "d"]) and is_as_shown(["...", "a"], ["a"]), "any lines")
    check(is_as_shown(["done in 0.02 s"], ["done in 1.30 s"]), "times")
    check(not is_as_shown(["a"], ["a", "b"]) and not is_as_shown(["a", "b"], ["a"]) and not is_as_shown([], ["a"]), "too much")
    check(is_as_shown(["a b", "  c", "  d", "e"], ["a b c d", "e"]) and is_as_shown(["a", "  b"], ["a", "  b"]), "long lines")
    check(not is_as_shown(["a", "b"], ["a b"]), "a line that is not indented")
    check(not is_as_shown(["4 ports"], ["5 ports"]) and not is_as_shown(["...", "d", "e"], ["d", "f"]), "other lines")


def test_manual_page():
    page = [".Bd -literal", r"$ a\&", r"\&.b \e", ".Ed", r'.\" test: site', ".Bd -literal -offset indent", "a", ".Ed"]
    shown = ["```console", "$ a", ".b \\", "```", "<!-- test: site -->", "```", "a", "```"]
    check_equal(as_markdown("\n".join(page)).splitlines(), shown, "a page")


def test_tutorial():
    run("doc/tutorial.md")


def test_tasks():
    run("man/pkeyd-tasks.7")


def test_rest():
    program("pkeyd-rest")
    for tool in ("curl", "mkpasswd", "openssl", "systemd-socket-activate", "ip"):
        if not shutil.which(tool):
            raise Skip("%s is not installed (scripts/install-deps --test)" % tool)
    if os.environ.get("IBSIM_SOCKNAME") != "sim":
        raise Skip("port 443 needs a network namespace of its own")
    run("doc/rest.md")


if __name__ == "__main__":
    main()
