#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Golden files, and the two files that are shipped.
set -eu
golden=$top_builddir/golden
"$golden" "$top_srcdir/tests/golden/rejected" rejected
"$golden" "$top_srcdir/tests/golden/accepted" accepted
"$golden" "$top_srcdir/tests/golden/settings" settings
"$golden" -c "$top_srcdir/conf/partitions.yaml" accepted
"$golden" -c "$top_srcdir/conf/pkeyd.yaml" settings
