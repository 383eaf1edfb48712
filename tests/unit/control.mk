# unit tests of src/control
check_PROGRAMS += check_sm_follow
TESTS += check_sm_follow
check_sm_follow_SOURCES = tests/unit/check_sm_follow.c
check_sm_follow_LDADD = $(TEST_LIBS)
