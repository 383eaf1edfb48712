# Functions for the other scripts, which source this file. $top must be the root of the source tree.

jobs=$(nproc 2>/dev/null || echo 2)

say() {
        printf '\n\033[1m== %s\033[0m\n' "$*"
}
[[ -t 1 && -z ${NO_COLOR:-} ]] || say() { printf '\n== %s\n' "$*"; }

# Runs a command without output; if it fails, prints the end of its output and returns 1.
quietly() {
        local log
        log=$(mktemp)
        if ! "$@" </dev/null >"$log" 2>&1; then
                tail -n 60 "$log" >&2
                rm -f "$log"
                echo "failed: $*" >&2
                return 1
        fi
        rm -f "$log"
}

# Prints the source directory to build from: the tree itself, or a copy of it below $1 if the tree is configured in place, because
# configure then refuses a build elsewhere.
source_for() {
        local copy=$1/source
        if [[ ! -e $top/config.status ]]; then
                echo "$top"
                return
        fi
        rm -rf "$copy"
        mkdir -p "$copy"
        (cd "$top" && git -c safe.directory='*' ls-files -z --cached --others --exclude-standard 2>/dev/null \
                | tar -c --null --ignore-failed-read -T - 2>/dev/null) | tar -x -C "$copy"
        [[ -e $copy/configure.ac ]] || { echo "run make distclean first: the tree is configured in place" >&2; return 1; }
        echo "$copy"
}

# Configures a build in directory $1 with the other arguments for configure, unless it was configured with them before.
configure_in() {
        local build=$1 source
        shift
        mkdir -p "$build"
        source=$(source_for "$build")
        if [[ ! -x $source/configure || $source/configure -ot $source/configure.ac ]]; then
                (cd "$source" && quietly autoreconf -fi)
        fi
        if [[ ! -e $build/Makefile || $(cat "$build/arguments" 2>/dev/null) != "$source $*" ]]; then
                (cd "$build" && quietly "$source/configure" "$@")
                echo "$source $*" >"$build/arguments"
        fi
}
