# explain and assume
check_PROGRAMS += check_explain
TESTS += check_explain
check_explain_SOURCES = tests/unit/check_explain.c
check_explain_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_changes
TESTS += check_changes
check_changes_SOURCES = tests/unit/check_changes.c tests/unit/fake_fabric.c tests/unit/fake_fabric.h
check_changes_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_reach
TESTS += check_reach
check_reach_SOURCES = tests/unit/check_reach.c
check_reach_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_applications
TESTS += check_applications
check_applications_SOURCES = tests/unit/check_applications.c
check_applications_LDADD = $(TEST_LIBS)
