#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Golden files, and the two files that are shipped: as they are, and with all of their examples uncommented.
set -eu
golden=$top_builddir/golden
"$golden" "$top_srcdir/tests/golden/rejected" rejected
"$golden" "$top_srcdir/tests/golden/accepted" accepted
"$golden" "$top_srcdir/tests/golden/settings" settings
"$golden" -c "$top_srcdir/conf/partitions.yaml" accepted
"$golden" -c "$top_srcdir/conf/pkeyd.yaml" settings

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
trap 'rm -f "$uncommented"' EXIT
for kind in accepted settings; do
        case $kind in
        accepted) file=partitions.yaml ;;
        settings) file=pkeyd.yaml ;;
        esac
        sed 's/^\( *\)#\([a-z"-]\)/\1\2/' "$top_srcdir/conf/$file" >"$uncommented"
        "$golden" -c "$uncommented" $kind
done
