# tests/golden/: bad and good files with their findings
check_PROGRAMS += golden
golden_SOURCES = tests/golden/golden.c tests/golden/policy_print.c tests/golden/policy_print.h
golden_LDADD = libpkeyd-core.la
TESTS += tests/golden/check_golden.sh
EXTRA_DIST += tests/golden/check_golden.sh tests/golden/rejected tests/golden/accepted tests/golden/settings \
	tests/golden/partitions
