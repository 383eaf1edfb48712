#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A thousand histories, 200 with changes that wait to be confirmed, and undos, 100 that also have leases, 100 of two head nodes
# that share a store, where processes are paused and cut off from it, and 100 of two head nodes with all of that; those of
# tests/fabsim/seeds; and that one seed is one history.
set -u
simulate=$top_builddir/tests/fabsim/simulate
seeds=${SIMULATE_SEEDS:-1000}

# What all histories together must have seen, as simulate calls it: a class of events that no history has any more is a part
# of pkeyd that is not tested any more.
totals=(seeds events MADs Sets 'writes of OpenSM' 'pairs checked' sweeps 'tables called right' 'indexes passed on'
        'ends of processes' reloads hand-overs converged refused 'converged but for ports without their M_Key' 'changes waited' confirmed undone
        'requests for leases' granted 'granted in part' edited 'given index 0' renewed released 'not granted' 'requests refused' 'leases restored'
        'ended by their time' 'requests passed on' 'passed back' 'without an answer' 'carried out again' 'not stored in time' take-overs
        lies
        'clocks set' 'boots of head nodes'
        'loads failed'
        'edits of partitions.conf'
        'late answers')
undo_seeds=$((1 << 40)) # from here on, see SIM_UNDO_SEEDS
lease_seeds=$((1 << 41)) # from here on, see SIM_LEASE_SEEDS
share_seeds=$((1 << 42)) # from here on, see SIM_SHARE_SEEDS
pass_seeds=$((1 << 43)) # from here on, see SIM_PASS_SEEDS
leases='requests for leases|granted|granted in part|edited|given index 0|renewed|released|not granted|requests refused|leases restored|ended by their time|not stored in time'
passed='requests passed on|passed back|without an answer|carried out again|take-overs'

history() { "$simulate" --seed "$1" --trace | cksum; }

for seed in 3 17 4711 $lease_seeds $pass_seeds; do
        if [ "$(history $seed)" != "$(history $seed)" ]; then
                echo "seed $seed gives two histories"
                exit 1
        fi
done
while read -r seed _; do
        "$simulate" --first "$seed" --seeds 1 || exit 1
done < <(grep -v '^#' "$top_srcdir/tests/fabsim/seeds")
# each of the first allocations failing, of a start and of a reload, with both writers
for seed in 3 28; do
        "$simulate" --seed "$seed" --fail-allocations "$seeds" && "$simulate" --seed "$seed" --fail-allocations "$seeds" --in-reload || exit 1
done

# some FIRST SEEDS PATTERN: histories; what matches the pattern they have not.
some() {
        local said result counted

        said=$("$simulate" --first "$1" --seeds "$2")
        result=$?
        echo "$said"
        [ $result -eq 0 ] || exit $result

        # "1000 seeds: 17 events, 4 MADs, ...; 3 converged, ...", one to a line
        counted=$(tail -n 1 <<<"$said" | sed 's/[,;:] */\n/g')
        if [ "$counted" != "$(for total in "${totals[@]}"; do grep -xE "[0-9]+ $total" <<<"$counted"; done)" ]; then
                echo "simulate counts something else than this test knows: ${totals[*]}"
                exit 1
        fi
        if [ "$seeds" -ge 1000 ] && grep -E '^0 ' <<<"$counted" | grep -vE "$3"; then
                echo "... in $2 histories: that is not tested any more"
                exit 1
        fi
}

some 1 "$seeds" " (changes waited|confirmed|undone|$leases|$passed)$"
some $undo_seeds $((seeds * 2 / 10)) " ($leases|$passed)$"
some $lease_seeds $((seeds / 10)) " ($passed|not stored in time|loads failed)$"
some $share_seeds $((seeds / 10)) " (changes waited|confirmed|undone|indexes passed on|$leases|$passed)$"
some $pass_seeds $((seeds / 10)) ' (writes of OpenSM|indexes passed on|loads failed|edits of partitions.conf)$'
exit 0
