# policy/
libpkeyd_core_la_SOURCES += \
	src/policy/freeze.c \
	src/policy/freeze.h \
	src/policy/hostlist.c \
	src/policy/hostlist.h \
	src/policy/policy.c \
	src/policy/policy.h \
	src/policy/policy_check.c \
	src/policy/policy_contradictions.c \
	src/policy/policy_fix.c \
	src/policy/policy_fix.h \
	src/policy/policy_groups.c \
	src/policy/policy_ipoib.c \
	src/policy/policy_keys.h \
	src/policy/policy_parse.c \
	src/policy/policy_partitions.c \
	src/policy/policy_pools.c \
	src/policy/policy_ranges.c \
	src/policy/policy_reader.h \
	src/policy/policy_resolve.c \
	src/policy/policy_select.c \
	src/policy/policy_select.h \
	src/policy/selector.c \
	src/policy/selector.h \
	src/policy/selector_hint.c \
	src/policy/selector_hint.h \
	src/policy/selector_match.c \
	src/policy/selector_match.h
libpkeyd_core_la_SOURCES += src/policy/policy_guids.c src/policy/policy_guids.h
libpkeyd_core_la_SOURCES += src/policy/policy_local.c src/policy/policy_local.h
libpkeyd_core_la_SOURCES += src/policy/typing_error.c src/policy/typing_error.h
