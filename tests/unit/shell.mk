# unit tests of src/shell
check_PROGRAMS += check_state_dir
TESTS += check_state_dir
check_state_dir_SOURCES = tests/unit/check_state_dir.c
check_state_dir_LDADD = libpkeyd-shell.la $(TEST_LIBS)
