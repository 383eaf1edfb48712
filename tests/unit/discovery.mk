# unit tests of src/discovery, on the virtual fabric
DISCOVERY_FIXTURE = tests/unit/discovery_fixture.c tests/unit/discovery_fixture.h tests/unit/snapshot_rules.c \
	tests/unit/snapshot_rules.h tests/fabsim/prng.h $(FABSIM_FABRIC)
check_PROGRAMS += check_discovery check_discovery_lies check_discovery_limits check_discovery_links
TESTS += check_discovery check_discovery_lies check_discovery_limits check_discovery_links
check_discovery_SOURCES = tests/unit/check_discovery.c $(DISCOVERY_FIXTURE)
check_discovery_LDADD = $(TEST_LIBS)
check_discovery_lies_SOURCES = tests/unit/check_discovery_lies.c $(DISCOVERY_FIXTURE)
check_discovery_lies_LDADD = $(TEST_LIBS)
check_discovery_limits_SOURCES = tests/unit/check_discovery_limits.c $(DISCOVERY_FIXTURE)
check_discovery_limits_LDADD = $(TEST_LIBS)
# memory runs out at each allocation once
check_discovery_limits_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=reallocarray
check_discovery_links_SOURCES = tests/unit/check_discovery_links.c
check_discovery_links_LDADD = $(TEST_LIBS)
