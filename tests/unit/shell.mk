# unit tests of src/shell
check_PROGRAMS += check_state_dir check_discovery
TESTS += check_state_dir check_discovery
check_state_dir_SOURCES = tests/unit/check_state_dir.c
check_state_dir_LDADD = libpkeyd-shell.la $(TEST_LIBS)
check_discovery_SOURCES = tests/unit/check_discovery.c
check_discovery_LDADD = libpkeyd-shell.la $(TEST_LIBS)
