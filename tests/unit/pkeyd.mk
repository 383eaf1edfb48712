# unit tests of src/pkeyd
check_PROGRAMS += check_violation_item
TESTS += check_violation_item
check_violation_item_SOURCES = tests/unit/check_violation_item.c src/pkeyd/bus_message.c src/pkeyd/journal.c \
	src/pkeyd/violation_text.c
check_violation_item_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SYSTEMD_LIBS) $(JANSSON_LIBS)
check_violation_item_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sd_journal_sendv

check_PROGRAMS += check_bus_violations
TESTS += check_bus_violations
check_bus_violations_SOURCES = tests/unit/check_bus_violations.c src/pkeyd/bus_message.c src/pkeyd/bus_violations.c
check_bus_violations_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SYSTEMD_LIBS) $(JANSSON_LIBS)
check_bus_violations_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_now

check_PROGRAMS += check_forward
TESTS += check_forward
check_forward_SOURCES = tests/unit/check_forward.c src/pkeyd/forward.c
check_forward_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SYSTEMD_LIBS) $(JANSSON_LIBS)
check_forward_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=etcd_mailbox_new
