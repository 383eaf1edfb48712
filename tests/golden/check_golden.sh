#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The golden files, and the two shipped files: as they are, and with all examples uncommented.
set -eu
golden=$top_builddir/golden
here=$(pwd)
golden_files=$(cd "$top_srcdir/tests/golden" && pwd)
"$golden" "$top_srcdir/tests/golden/rejected" rejected
"$golden" "$top_srcdir/tests/golden/accepted" accepted
"$golden" "$top_srcdir/tests/golden/settings" settings
"$golden" -c "$top_srcdir/conf/partitions.yaml" accepted
"$golden" -c "$top_srcdir/conf/pkeyd.yaml" settings

# The output of import for each partitions.conf: the findings, then the policy. GOLDEN_WRITE works here, too.
pkeyctl=$(cd "$top_builddir" && pwd)/pkeyctl
got=$(mktemp)
trap 'rm -f "$got"' EXIT
cd "$golden_files/partitions"
n=0
for conf in *.conf; do
        {
                "$pkeyctl" import --topology fabric.net "$conf" 2>&1 >"$got.yaml" || echo "exit status $?"
                cat "$got.yaml"
        } >"$got"
        rm -f "$got.yaml"
        if [ -n "${GOLDEN_WRITE-}" ]; then
                cp "$got" "${conf%.conf}.expected"
        elif ! diff -u "${conf%.conf}.expected" "$got" >&2; then
                echo "partitions/$conf: the output of import differs" >&2
                exit 1
        fi
        n=$((n + 1))
done
cd "$here"
test "$n" -gt 80

# The manual pages and the parser name the same keys.
for page in "accepted partitions.yaml.5" "settings pkeyd.yaml.5"; do
        kind=${page% *}
        keys=$("$golden" -k "$kind" | sort)
        documented=$(sed -n 's/^\.It Ic \([a-z0-9_.]*\).*/\1/p' "$top_srcdir/man/${page#* }" | sort)
        if [ "$keys" != "$documented" ]; then
                echo "${page#* } documents" $documented ", the parser knows" $keys >&2
                exit 1
        fi
done

uncommented=$(mktemp)
trap 'rm -f "$uncommented" "$got"' EXIT
for kind in accepted settings; do
        case $kind in
        accepted) file=partitions.yaml ;;
        settings) file=pkeyd.yaml ;;
        esac
        sed 's/^\( *\)#\([a-z"-]\)/\1\2/' "$top_srcdir/conf/$file" >"$uncommented"
        "$golden" -c "$uncommented" $kind
done
