# unit tests of local verification: src/verify/verbs_tables.c, src/policy/policy_local.c
check_PROGRAMS += check_verbs_tables
TESTS += check_verbs_tables
check_verbs_tables_SOURCES = tests/unit/check_verbs_tables.c tests/unit/policy_fixture.h
check_verbs_tables_LDADD = $(TEST_LIBS)
