# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of pkeyctl for fish. `pkeyctl complete` knows what can be typed (pkeyctl(1), COMPLETION); nothing of its answer is
# evaluated.

function __pkeyctl_complete
    set -l line (commandline -opc)
    set -l word (commandline -ct)
    set -l answer (command pkeyctl complete (count $line) $line "$word" 2>/dev/null)
    # of --option=FILE, the FILE
    set -l option (string match -r -- '^--[^=]*=' "$word")
    set -l path (string replace -r -- '^--[^=]*=' '' "$word")
    switch "$answer[1]"
        case :files
            for item in (__fish_complete_path "$path")
                printf '%s\n' "$option$item"
            end
        case :directories
            for item in (__fish_complete_directories "$path")
                printf '%s\n' "$option$item"
            end
        case :none ''
        case '*'
            printf '%s\n' $answer
    end
end

complete -c pkeyctl -f -a '(__pkeyctl_complete)'
