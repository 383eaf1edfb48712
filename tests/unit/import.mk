check_PROGRAMS += check_import
TESTS += check_import
check_import_SOURCES = tests/unit/check_import.c tests/unit/policy_fixture.h
check_import_LDADD = $(TEST_LIBS)
