# unit tests of src/watch
check_PROGRAMS += check_watch
TESTS += check_watch
check_watch_SOURCES = tests/unit/check_watch.c
check_watch_LDADD = $(TEST_LIBS)
