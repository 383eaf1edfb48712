# unit tests of src/policy
check_PROGRAMS += check_hostlist check_policy check_policy_fix check_policy_resolve
TESTS += check_hostlist check_policy check_policy_fix check_policy_resolve
check_hostlist_SOURCES = tests/unit/check_hostlist.c tests/unit/arena_fixture.h tests/unit/random_names.h \
	tests/fabsim/prng.h
check_hostlist_LDADD = $(TEST_LIBS)
check_policy_SOURCES = tests/unit/check_policy.c tests/golden/policy_print.c tests/unit/findings_fixture.h tests/unit/policy_fixture.h
check_policy_LDADD = $(TEST_LIBS)
check_policy_fix_SOURCES = tests/unit/check_policy_fix.c tests/golden/policy_print.c tests/unit/policy_fixture.h \
	tests/fabsim/prng.h
check_policy_fix_LDADD = $(TEST_LIBS)
check_policy_resolve_SOURCES = tests/unit/check_policy_resolve.c tests/unit/policy_fixture.h tests/unit/random_names.h \
	tests/fabsim/prng.h
check_policy_resolve_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_policy_guids
TESTS += check_policy_guids
check_policy_guids_SOURCES = tests/unit/check_policy_guids.c tests/unit/policy_fixture.h
check_policy_guids_LDADD = $(TEST_LIBS)
