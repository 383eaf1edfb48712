# unit tests of src/store, and of the stores in src/state and src/etcd
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

check_PROGRAMS += check_stores
TESTS += check_stores
check_stores_SOURCES = tests/unit/check_stores.c tests/unit/etcd_fixture.c tests/unit/etcd_fixture.h
check_stores_LDADD = libpkeyd-shell.la $(TEST_LIBS)

check_PROGRAMS += check_etcd_store
TESTS += check_etcd_store
check_etcd_store_SOURCES = tests/unit/check_etcd_store.c tests/unit/etcd_fixture.c tests/unit/etcd_fixture.h
check_etcd_store_LDADD = libpkeyd-shell.la $(TEST_LIBS)
check_etcd_store_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=etcd_http_call

check_PROGRAMS += check_shared_state
TESTS += check_shared_state
check_shared_state_SOURCES = tests/unit/check_shared_state.c tests/unit/etcd_fixture.c tests/unit/etcd_fixture.h
check_shared_state_LDADD = libpkeyd-shell.la $(TEST_LIBS)
check_shared_state_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=directory_lock_take

check_PROGRAMS += check_mailbox
TESTS += check_mailbox
check_mailbox_SOURCES = tests/unit/check_mailbox.c tests/unit/etcd_fixture.c tests/unit/etcd_fixture.h
check_mailbox_LDADD = libpkeyd-shell.la $(TEST_LIBS)
