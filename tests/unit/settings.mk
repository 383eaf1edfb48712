# unit tests of src/settings
check_PROGRAMS += check_settings
TESTS += check_settings
check_settings_SOURCES = tests/unit/check_settings.c
check_settings_LDADD = $(TEST_LIBS)
