# unit tests of src/shell
check_PROGRAMS += check_state check_file check_verbs_port
TESTS += check_state check_file check_verbs_port
check_state_SOURCES = tests/unit/check_state.c
check_state_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SQLITE_LIBS)
check_file_SOURCES = tests/unit/check_file.c
check_file_LDADD = libpkeyd-shell.la $(TEST_LIBS)
check_verbs_port_SOURCES = tests/unit/check_verbs_port.c
check_verbs_port_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SYSTEMD_LIBS)

# the port session against ibsim (skipped without it)
check_PROGRAMS += smp_rate port_again
smp_rate_SOURCES = tests/unit/smp_rate.c
smp_rate_LDADD = libpkeyd-shell.la
port_again_SOURCES = tests/unit/port_again.c
port_again_LDADD = libpkeyd-shell.la
TESTS += tests/unit/check_port_session.sh

check_PROGRAMS += check_port_turn
TESTS += check_port_turn
check_port_turn_SOURCES = tests/unit/check_port_turn.c
check_port_turn_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SYSTEMD_LIBS)
check_port_turn_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_now,--wrap=umad_port_open,--wrap=umad_port_close,--wrap=umad_port_send \
	-Wl,--wrap=umad_port_event_fd,--wrap=umad_port_take

check_PROGRAMS += check_opensm_process
TESTS += check_opensm_process
check_opensm_process_SOURCES = tests/unit/check_opensm_process.c
check_opensm_process_LDADD = libpkeyd-shell.la $(TEST_LIBS) $(SYSTEMD_LIBS)
check_opensm_process_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=file_read

check_PROGRAMS += check_command_line
TESTS += check_command_line
check_command_line_SOURCES = tests/unit/check_command_line.c tests/unit/findings_fixture.h
check_command_line_LDADD = libpkeyd-shell.la $(TEST_LIBS)

check_PROGRAMS += check_ipoib_interface
TESTS += check_ipoib_interface
check_ipoib_interface_SOURCES = tests/unit/check_ipoib_interface.c
check_ipoib_interface_LDADD = libpkeyd-shell.la $(TEST_LIBS)

check_PROGRAMS += check_fabric
TESTS += check_fabric
check_fabric_SOURCES = tests/unit/check_fabric.c tests/unit/findings_fixture.h
check_fabric_LDADD = libpkeyd-shell.la $(TEST_LIBS)

check_PROGRAMS += check_text_diff
TESTS += check_text_diff
check_text_diff_SOURCES = tests/unit/check_text_diff.c tests/unit/arena_fixture.h
check_text_diff_LDADD = libpkeyd-shell.la $(TEST_LIBS)
