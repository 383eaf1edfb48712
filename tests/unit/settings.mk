# unit tests of src/settings
check_PROGRAMS += check_settings
TESTS += check_settings
check_settings_SOURCES = tests/unit/check_settings.c tests/unit/findings_fixture.h
check_settings_LDADD = $(TEST_LIBS)
