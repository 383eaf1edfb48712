# unit tests of src/discovery
check_PROGRAMS += check_discovery_links
TESTS += check_discovery_links
check_discovery_links_SOURCES = tests/unit/check_discovery_links.c
check_discovery_links_LDADD = $(TEST_LIBS)
