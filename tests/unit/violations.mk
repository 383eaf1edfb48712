# unit tests of src/violations and of src/ib/pma.c
check_PROGRAMS += check_pma check_violations
TESTS += check_pma check_violations
check_pma_SOURCES = tests/unit/check_pma.c
check_pma_LDADD = $(TEST_LIBS)
check_violations_SOURCES = tests/unit/check_violations.c
check_violations_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_violation_poll
TESTS += check_violation_poll
check_violation_poll_SOURCES = tests/unit/check_violation_poll.c
check_violation_poll_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_violation_hosts
TESTS += check_violation_hosts
check_violation_hosts_SOURCES = tests/unit/check_violation_hosts.c tests/unit/policy_fixture.h tests/fabsim/prng.h
check_violation_hosts_LDADD = $(TEST_LIBS)
