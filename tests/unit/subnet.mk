# unit tests of src/subnet, src/pins and src/verify
check_PROGRAMS += check_subnet check_topology check_survey check_verify
TESTS += check_subnet check_topology check_survey check_verify
check_subnet_SOURCES = tests/unit/check_subnet.c
check_subnet_LDADD = $(TEST_LIBS)
check_topology_SOURCES = tests/unit/check_topology.c
check_topology_LDADD = $(TEST_LIBS)
check_survey_SOURCES = tests/unit/check_survey.c
check_survey_LDADD = $(TEST_LIBS)
check_verify_SOURCES = tests/unit/check_verify.c
check_verify_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_known
TESTS += check_known
check_known_SOURCES = tests/unit/check_known.c
check_known_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_fold
TESTS += check_fold
check_fold_SOURCES = tests/unit/check_fold.c tests/unit/arena_fixture.h
check_fold_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_pins
TESTS += check_pins
check_pins_SOURCES = tests/unit/check_pins.c tests/unit/arena_fixture.h
check_pins_LDADD = $(TEST_LIBS)
