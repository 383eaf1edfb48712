# unit tests of src/store and of the stores in src/shell
check_PROGRAMS += check_store
TESTS += check_store
check_store_SOURCES = tests/unit/check_store.c
check_store_LDADD = $(TEST_LIBS)
check_store_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc

check_PROGRAMS += check_sqlite_store
TESTS += check_sqlite_store
check_sqlite_store_SOURCES = tests/unit/check_sqlite_store.c
check_sqlite_store_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SQLITE_LIBS)
check_sqlite_store_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
