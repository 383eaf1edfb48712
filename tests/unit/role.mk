# unit tests of src/watch/role.h
check_PROGRAMS += check_role
TESTS += check_role
check_role_SOURCES = tests/unit/check_role.c
check_role_LDADD = $(TEST_LIBS)
