# SPDX-License-Identifier: GPL-2.0-or-later
"""The core does no I/O, reads no clock, never logs, never exits: it uses only the external symbols in this list."""

import re

from lint import archive, finish, problem, symbols

ALLOWED = re.compile("|".join((
    # memory
    r"malloc|calloc|realloc|reallocarray|free|(__)?explicit_bzero(_chk)?|mem(cmp|cpy|move|set|chr|mem|rchr|pcpy)",
    # strings and numbers; formatting into memory, not to a stream
    r"str(n?len|n?cmp|n?casecmp|r?chr|chrnul|c?spn|pbrk|n?cpy|str|n?dup|tok_r|tou?ll?|sep)|stpn?cpy",
    r"(__)?v?snprintf(_chk)?|(__)?(mem|str|stp)n?(cpy|move|set|cat)_chk|__(isoc23|isoc99)_str[a-z]+|__strtou?ll?_internal",
    r"__ctype_(b|tolower|toupper)_loc|is[a-z]+|to(upper|lower)|fnmatch",
    r"qsort|qsort_r|bsearch|abs|labs",
    r"__errno_location",
    # the text of an errno, for log entries and findings of control
    r"strerror",
    # failed assertions: the only way in which the core may end the process
    r"__assert_fail",
    # libxcrypt: bytes to bytes
    r"crypt_r",
    # inserted by the compiler
    r"__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__(asan|ubsan|sanitizer|sancov|gcov|llvm)_.*|__gcov.*|__start_.*|__stop_.*|__divti3|"
    r"__popcountdi2",
    # seconds to a date in UTC: arithmetic, without a clock
    r"gmtime_r|strftime",
    # addresses to text and back
    r"inet_(pton|ntop)",
    # libyaml, fed from memory
    r"yaml_(?!parser_set_input_file|emitter_set_output_file)[a-z_]+",
    # jansson, from and to memory
    r"json_(?!load_file|loadf|load_callback|dump_file|dumpf|dumpfd|dump_callback)[a-z_]+",
    # libibmad's field tables; mad_encode generates a transaction ID only if the caller gives none
    r"mad_(get|set)_(field|field64|array)|mad_encode|mad_(encode|decode)_field",
)))

core = archive("libpkeyd-core")
own = symbols(core, "-g", "--defined-only")
needed = symbols(core, "-u")
for symbol, member in sorted(needed.items()):
    if symbol not in own and not ALLOWED.fullmatch(symbol):
        problem(member, "needs %s, which the core may not use (HACKING.md, rule 1)" % symbol)
finish("%d symbols of the core, %d of others that it needs" % (len(own), len(set(needed) - set(own))))
