#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the fuzz targets with their corpus. Built with --enable-fuzzers, they fuzz instead, for FUZZ_SECONDS.
set -eu
golden=$top_srcdir/tests/golden
corpus=$top_srcdir/tests/fuzz/corpus
run() {
        target=$1
        shift
        if grep -aq LLVMFuzzerRunDriver "$top_builddir/$target"; then
                new=$(mktemp -d)
                trap 'rm -rf "$new"' EXIT
                "$top_builddir/$target" -max_len=16384 -timeout=20 -rss_limit_mb=2048 -artifact_prefix="$new/" \
                        -max_total_time="${FUZZ_SECONDS:-20}" "$new" "$@"
        else
                "$top_builddir/$target" "$@"
        fi
}
run fuzz_notice "$corpus/notice"
run fuzz_policy "$golden/rejected" "$golden/accepted" "$corpus/policy"
run fuzz_policy_fix "$corpus/policy_fix"
run fuzz_rest "$corpus/rest"
run fuzz_settings "$golden/settings" "$corpus/settings"
run fuzz_partitions_conf "$golden/partitions"
run fuzz_m_keys "$corpus/m_keys"
run fuzz_discovery "$corpus/discovery"
run fuzz_neighbors "$corpus/neighbors"
