#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Some thousand histories; those that once failed; and that one seed is one history.
set -u
simulate=$top_builddir/tests/fabsim/simulate
seeds=${SIMULATE_SEEDS:-3000}

history() { "$simulate" --seed "$1" --trace | tail -n 1 && "$simulate" --seed "$1" --trace | cksum; }

for seed in 3 17 4711; do
        if [ "$(history $seed)" != "$(history $seed)" ]; then
                echo "seed $seed gives two histories"
                exit 1
        fi
done
while read -r seed _; do
        "$simulate" --first "$seed" --seeds 1 || exit 1
done < <(grep -v '^#' "$top_srcdir/tests/fabsim/seeds")
said=$("$simulate" --first 1 --seeds "$seeds")
result=$?
echo "$said"
if [ "$seeds" -ge 300 ] && [[ $said == *"; 0 writes without the M_Key"* || $said == *", 0 converged but for them"* ]]; then
        echo "no seed had a port whose M_Key is not what m_key_file says"
        exit 1
fi
exit $result
