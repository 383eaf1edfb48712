# SPDX-License-Identifier: GPL-2.0-or-later
"""For the admin: what is held, by whom, why, and the way out.

A is mute: it answers discovery, and not for its P_Key table."""

import os

from harness import Fabric, check, check_equal, main, program, two_level

A, B, C = "node0002", "node0003", "node0004"
SETTINGS = "timeout: 100ms\n"


class Muted:
    """A fabric on which A does not answer for its P_Key table."""

    def __init__(self):
        self.fabric = Fabric(two_level(2, 2, 4))

    def __enter__(self):
        f = self.fabric.__enter__()
        f.settings(SETTINGS)
        f.lose(A, 100)
        return f

    def __exit__(self, *what):
        return self.fabric.__exit__(*what)


def vouches(fabric):
    return fabric.pkeyctl("show", "vouches", "--json").expect(0).json()["vouches"]


def test_forget():
    with Muted() as f:
        check_equal(vouches(f), [], "vouches on a fresh host")
        check_equal(f.pkeyctl("show", "vouches").expect(0).out, "nobody vouches for any port\n", "the same in words")
        r = f.pkeyctl("forget", A, "--yes").expect(0)
        check(A in r.out and "has never answered for its P_Key table" in r.out and "may hold any P_Key" in r.out,
              "what is forgotten is not named:", r)
        check("counts as holding nothing" in r.out, "what that means is not said:", r)
        (v,) = vouches(f)
        check_equal((v["node"], v["port"], v["kind"], v["may_hold"]), (A, 1, "endport", None), "the vouch")
        check_equal(v["port_guid"], "0x%016x" % f.topology.port_guid(A), "its port")
        check(v["vouched_by"] and v["vouched_at"].endswith("Z"), "who and when", v)
        check(A in f.pkeyctl("show", "vouches").expect(0).out, "show vouches in words")


def test_forget_as_json():
    with Muted() as f:
        (v,) = f.pkeyctl("forget", A, "--yes", "--json").expect(0).json()["vouches"]
        check_equal(v["node"], A, "the port")


def test_who_vouches():
    with Muted() as f:
        f.pkeyctl("forget", "0x%016x" % f.topology.port_guid(A), "--yes", SUDO_USER="alice").expect(0)
        check_equal([v["vouched_by"] for v in vouches(f)], ["alice"], "the person behind sudo")


def refused(fabric, code, *arguments):
    r = fabric.pkeyctl("forget", *arguments, "--yes", "--json").expect(1)
    check(code in [finding["code"] for finding in r.json()["findings"]], "expected %s:" % code, r)
    check_equal(vouches(fabric), [], "vouches after forget %s was refused" % " ".join(arguments))


def test_refused():
    with Muted() as f:
        refused(f, "forget.answers", B)
        refused(f, "forget.answers", A, B)
        refused(f, "selector.no-match", "nobody")
        refused(f, "selector.no-match", "0x0000000000000001")


def test_expired():
    """A port that is gone for longer than absent_hold holds nothing up."""
    with Muted() as f:
        f.pkeyctl("forget", A, "--yes").expect(0)
        f.console('Unlink "%s"' % B)
        f.settings(SETTINGS + "absent_hold: 0s\n")
        r = f.pkeyctl("forget", B, "--yes", "--json").expect(1)
        check_equal([finding["code"] for finding in r.json()["findings"]], ["forget.expired"], "why it is refused")
        f.settings(SETTINGS + "absent_hold: forever\n")
        r = f.pkeyctl("forget", B, "--yes").expect(0)
        check("is not in the fabric" in r.out and "for ever" in r.out, "what is known of it:", r)
        check_equal([v["node"] for v in vouches(f)], [A, B], "vouches")


def test_nobody_is_asked():
    """Without a terminal and without --yes nothing is vouched for."""
    with Muted() as f:
        r = f.pkeyctl("forget", A).expect(1)
        check("no terminal" in r.err, "why:", r)
        check_equal(vouches(f), [], "vouches")


def test_reads_only():
    """show vouches makes no state directory."""
    with Muted() as f:
        where = f.path("nowhere")
        f.run([program("pkeyctl"), "show", "vouches", "--state-dir", where]).expect(0)
        check(not os.path.exists(where), "the directory was made")


if __name__ == "__main__":
    main()
