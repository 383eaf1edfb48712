# unit tests of src/pkeyd
check_PROGRAMS += check_violation_item
TESTS += check_violation_item
check_violation_item_SOURCES = tests/unit/check_violation_item.c src/pkeyd/bus_message.c src/pkeyd/journal.c \
	src/pkeyd/violation_text.c
check_violation_item_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SYSTEMD_LIBS) $(JANSSON_LIBS)
check_violation_item_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sd_journal_sendv
