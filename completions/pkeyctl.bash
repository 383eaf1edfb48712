# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of pkeyctl for bash. `pkeyctl complete` knows what can be typed (pkeyctl(1), COMPLETION); nothing of its answer is
# evaluated.

_pkeyctl()
{
        local line=${COMP_LINE:0:COMP_POINT} breaks=${COMP_WORDBREAKS//[^=:@]/} words=() part rest word answer i
        COMPREPLY=()

        # bash splits words at = : and @, too: join those that no blank separates.
        for ((i = 0; i <= COMP_CWORD; i++)); do
                part=${COMP_WORDS[i]}
                rest=${line#"${line%%[![:space:]]*}"}
                if ((i > 0)) && [[ $rest == "$line" ]]; then
                        words[${#words[@]} - 1]+=$part
                else
                        words+=("$part")
                fi
                line=${rest#"$part"}
        done
        # What is behind the cursor does not count.
        word=${words[${#words[@]} - 1]}
        [[ $rest == "$part"* ]] || word=${word%"$part"}$rest
        words[${#words[@]} - 1]=$word
        # Without quotes; readline keeps the one that begins a word.
        words=("${words[@]#[\"\']}")
        words=("${words[@]%[\"\']}")
        word=${words[${#words[@]} - 1]}

        answer=$(command pkeyctl complete $((${#words[@]} - 1)) "${words[@]}" 2>/dev/null)
        case $answer in
        :files) compopt -o default 2>/dev/null ;;
        :directories) compopt -o dirnames 2>/dev/null ;;
        :none | '') ;;
        *)
                # bash replaces only what follows the last = or :, or begins with the last @.
                rest=
                [[ -n $breaks && $word == *["$breaks"]* ]] && rest=${word%"${word##*["$breaks"]}"}
                rest=${rest%@}
                while IFS=$'\t' read -r part i; do
                        printf -v part %q "${part#"$rest"}"
                        COMPREPLY+=("$part")
                done <<<"$answer"
                ;;
        esac
}

complete -F _pkeyctl pkeyctl
