# unit tests of src/control, src/actions and src/opensm_writer
check_PROGRAMS += check_sm_follow
TESTS += check_sm_follow
check_sm_follow_SOURCES = tests/unit/check_sm_follow.c
check_sm_follow_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_freezer
TESTS += check_freezer
check_freezer_SOURCES = tests/unit/check_freezer.c
check_freezer_LDADD = $(TEST_LIBS)

# with a shell that the test commands
CONTROL_FIXTURE = tests/unit/control_fixture.c tests/unit/control_fixture.h $(FABSIM_FABRIC)
check_PROGRAMS += check_control
TESTS += check_control
check_control_SOURCES = tests/unit/check_control.c $(CONTROL_FIXTURE)
check_control_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_control_sweep
TESTS += check_control_sweep
check_control_sweep_SOURCES = tests/unit/check_control_sweep.c $(CONTROL_FIXTURE)
check_control_sweep_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_reload
TESTS += check_reload
check_reload_SOURCES = tests/unit/check_reload.c $(CONTROL_FIXTURE)
check_reload_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_confirm
TESTS += check_confirm
check_confirm_SOURCES = tests/unit/check_confirm.c $(CONTROL_FIXTURE)
check_confirm_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_opensm_writer
TESTS += check_opensm_writer
check_opensm_writer_SOURCES = tests/unit/check_opensm_writer.c $(CONTROL_FIXTURE)
check_opensm_writer_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_control_parts
TESTS += check_control_parts
check_control_parts_SOURCES = tests/unit/check_control_parts.c $(CONTROL_FIXTURE)
check_control_parts_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_event_text
TESTS += check_event_text
check_event_text_SOURCES = tests/unit/check_event_text.c $(CONTROL_FIXTURE)
check_event_text_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_verbs_check
TESTS += check_verbs_check
check_verbs_check_SOURCES = tests/unit/check_verbs_check.c $(CONTROL_FIXTURE)
check_verbs_check_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_control_memory
TESTS += check_control_memory
check_control_memory_SOURCES = tests/unit/check_control_memory.c $(CONTROL_FIXTURE)
check_control_memory_LDADD = $(TEST_LIBS)
check_control_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=malloc -Wl,--wrap=reallocarray
check_PROGRAMS += check_control_pins
TESTS += check_control_pins
check_control_pins_SOURCES = tests/unit/check_control_pins.c $(CONTROL_FIXTURE)
check_control_pins_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_layout
TESTS += check_layout
check_layout_SOURCES = tests/unit/check_layout.c tests/unit/arena_fixture.h
check_layout_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_records
TESTS += check_records
check_records_SOURCES = tests/unit/check_records.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h
check_records_LDADD = $(TEST_LIBS)
check_records_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=reallocarray
