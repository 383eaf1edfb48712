#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The whole way of an SMP (stage, dispatcher, MAD engine, port, thread) against ibsim, with every answer looked at.
# With BENCH=1 it prints the time that it takes beside that of a bare umad loop.
set -eu

me=$(realpath "$0")
programs=$(realpath "${abs_top_builddir:-.}")
preload=
for directory in /usr/lib/*/umad2sim /usr/lib64/umad2sim /usr/lib/umad2sim; do
        if [ -e "$directory/libumad2sim.so" ]; then
                preload=$directory/libumad2sim.so
        fi
done
if ! command -v ibsim >/dev/null || [ -z "$preload" ]; then
        echo "skipped: ibsim or its preload library is not installed"
        exit 77
fi
if [ -z "${PKEYD_APART:-}" ]; then
        exec "$(dirname "$me")/../../scripts/apart" "$me" "$@"
fi

leaves=16
hosts=16
directory=$(mktemp -d)
ibsim_pid=
finish() {
        if [ -n "$ibsim_pid" ]; then
                kill "$ibsim_pid" 2>/dev/null || true
                wait "$ibsim_pid" 2>/dev/null || true
        fi
        cd /
        rm -rf "$directory"
}
trap finish EXIT INT TERM
cd "$directory"

{
        echo 'Switch 36 "root"'
        for l in $(seq $leaves); do
                echo "[$l] \"leaf$l\"[36]"
        done
        echo
        for l in $(seq $leaves); do
                echo "Switch 36 \"leaf$l\""
                for h in $(seq $hosts); do
                        echo "[$h] \"host$l-$h\"[1]"
                done
                printf '[36] "root"[%s]\n\n' "$l"
        done
        for l in $(seq $leaves); do
                for h in $(seq $hosts); do
                        printf 'Hca 1 "host%s-%s"\n[1] "leaf%s"[%s]\n\n' "$l" "$h" "$l" "$h"
                done
        done
} >net

ibsim -s -n net >ibsim.log 2>&1 </dev/null &
ibsim_pid=$!
for _ in $(seq 900); do
        if grep -q "@$IBSIM_SOCKNAME:ctl" /proc/net/unix; then
                break
        fi
        sleep 0.1
done

# AddressSanitizer wants to be the first library, and must not look into memcpy: the preload library copies 32 bytes more
# than it allocated. A leak check would also count what that library leaks at exit.
libraries=$preload
asan=$(ldd "$programs/smp_rate" | awk '/libasan/ { print $3 }')
if [ -n "$asan" ]; then
        libraries="$asan $preload"
fi
on_ibsim() {
        SIM_HOST=host1-1 LD_PRELOAD=$libraries ASAN_OPTIONS=detect_leaks=0:replace_intrin=0 "$@"
}
rate() {
        on_ibsim "$programs/smp_rate" "$@" "$leaves" "$hosts"
}

rate session 128 20000
rate session 1 200
# More rounds than the preload library has room for agents that are not given back.
on_ibsim "$programs/port_again" 40 $((leaves * hosts + leaves + 1))
if [ -n "${BENCH:-}" ]; then
        for _ in 1 2 3; do
                rate bare 128 300000
                rate session 128 300000
        done
fi
