# tests/fuzz/: targets for libFuzzer (--enable-fuzzers, CC=clang); without it, they replay the corpus
FUZZERS = fuzz_discovery fuzz_m_keys fuzz_neighbors fuzz_notice fuzz_partitions_conf fuzz_policy fuzz_policy_fix fuzz_rest fuzz_settings
check_PROGRAMS += $(FUZZERS)
fuzz_notice_SOURCES = tests/fuzz/fuzz_notice.c
fuzz_notice_LDADD = libpkeyd-core.la
fuzz_policy_SOURCES = tests/fuzz/fuzz_policy.c tests/golden/policy_print.c
fuzz_policy_LDADD = libpkeyd-core.la
fuzz_policy_fix_SOURCES = tests/fuzz/fuzz_policy_fix.c
fuzz_policy_fix_LDADD = libpkeyd-core.la
fuzz_rest_SOURCES = tests/fuzz/fuzz_rest.c
fuzz_rest_LDADD = libpkeyd-core.la $(CRYPT_LIBS)
fuzz_settings_SOURCES = tests/fuzz/fuzz_settings.c
fuzz_settings_LDADD = libpkeyd-core.la
fuzz_partitions_conf_SOURCES = tests/fuzz/fuzz_partitions_conf.c tests/unit/partitions_find.h
fuzz_partitions_conf_LDADD = libpkeyd-core.la
fuzz_m_keys_SOURCES = tests/fuzz/fuzz_m_keys.c
fuzz_m_keys_LDADD = libpkeyd-core.la
fuzz_discovery_SOURCES = tests/fuzz/fuzz_discovery.c tests/unit/snapshot_rules.c tests/unit/snapshot_rules.h
fuzz_discovery_LDADD = libpkeyd-core.la
fuzz_neighbors_SOURCES = tests/fuzz/fuzz_neighbors.c
fuzz_neighbors_LDADD = libpkeyd-core.la
if ENABLE_FUZZERS
fuzz_notice_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_policy_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_policy_fix_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_rest_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_settings_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_partitions_conf_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_m_keys_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_discovery_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_neighbors_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
else
fuzz_notice_SOURCES += tests/fuzz/replay.c
fuzz_policy_SOURCES += tests/fuzz/replay.c
fuzz_policy_fix_SOURCES += tests/fuzz/replay.c
fuzz_rest_SOURCES += tests/fuzz/replay.c
fuzz_settings_SOURCES += tests/fuzz/replay.c
fuzz_partitions_conf_SOURCES += tests/fuzz/replay.c
fuzz_m_keys_SOURCES += tests/fuzz/replay.c
fuzz_discovery_SOURCES += tests/fuzz/replay.c
fuzz_neighbors_SOURCES += tests/fuzz/replay.c
endif
TESTS += tests/fuzz/check_fuzz.sh
EXTRA_DIST += tests/fuzz/check_fuzz.sh tests/fuzz/corpus
