# SPDX-License-Identifier: GPL-2.0-or-later
"""pkeyd without memory, while OpenSM writes the tables: each allocation of a reload fails once. In a file of its own, because it takes
two minutes."""

from harness import main
from test_memory import SETTINGS, each_fails


def test_reload():
    each_fails(lambda fabric: SETTINGS + "writer: opensm\nopensm: {partitions_conf: %s, reload: 'pid:%d'}\n" %
               (fabric.path("partitions.conf"), fabric.opensm.pid))


if __name__ == "__main__":
    main()
