# unit tests of src/rest
check_PROGRAMS += check_rest check_rest_conf check_rest_edit check_rest_limits
TESTS += check_rest check_rest_conf check_rest_edit check_rest_limits
check_rest_SOURCES = tests/unit/check_rest.c tests/unit/arena_fixture.h tests/unit/fail_alloc.c tests/unit/fail_alloc.h
check_rest_LDFLAGS = $(AM_LDFLAGS) $(FAIL_ALLOC)
check_rest_LDADD = $(TEST_LIBS)
check_rest_conf_SOURCES = tests/unit/check_rest_conf.c tests/unit/findings_fixture.h tests/unit/fail_alloc.c tests/unit/fail_alloc.h
check_rest_conf_LDFLAGS = $(AM_LDFLAGS) $(FAIL_ALLOC)
check_rest_conf_LDADD = $(TEST_LIBS) $(CRYPT_LIBS)
check_rest_edit_SOURCES = tests/unit/check_rest_edit.c tests/unit/arena_fixture.h tests/unit/fail_alloc.c tests/unit/fail_alloc.h
check_rest_edit_LDFLAGS = $(AM_LDFLAGS) $(FAIL_ALLOC)
check_rest_edit_LDADD = $(TEST_LIBS)
check_rest_limits_SOURCES = tests/unit/check_rest_limits.c
check_rest_limits_LDADD = $(TEST_LIBS)
