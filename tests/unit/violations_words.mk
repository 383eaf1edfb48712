# what violations mean: history, attribution and what they are made of
check_PROGRAMS += check_history check_attribution
TESTS += check_history check_attribution
check_history_SOURCES = tests/unit/check_history.c tests/fabsim/prng.h
check_history_LDADD = $(TEST_LIBS)
check_attribution_SOURCES = tests/unit/check_attribution.c tests/unit/policy_fixture.h tests/fabsim/prng.h
check_attribution_LDADD = $(TEST_LIBS)
