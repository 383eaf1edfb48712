# explain and assume
check_PROGRAMS += check_explain
TESTS += check_explain
check_explain_SOURCES = tests/unit/check_explain.c
check_explain_LDADD = $(TEST_LIBS)
