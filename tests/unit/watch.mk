# unit tests of src/watch
check_PROGRAMS += check_watch
TESTS += check_watch
check_watch_SOURCES = tests/unit/check_watch.c
check_watch_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_rewrites
TESTS += check_rewrites
check_rewrites_SOURCES = tests/unit/check_rewrites.c
check_rewrites_LDADD = $(TEST_LIBS)
