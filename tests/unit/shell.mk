# unit tests of src/shell

# the pump and the fabric against ibsim (skipped without it)
check_PROGRAMS += smp_rate
smp_rate_SOURCES = tests/unit/smp_rate.c
smp_rate_LDADD = libpkeyd-shell.la
check_PROGRAMS += fabric_again
fabric_again_SOURCES = tests/unit/fabric_again.c
fabric_again_LDADD = libpkeyd-shell.la
TESTS += tests/unit/check_pump.sh
EXTRA_DIST += tests/unit/check_pump.sh

check_PROGRAMS += check_file
TESTS += check_file
check_file_SOURCES = tests/unit/check_file.c
check_file_LDADD = libpkeyd-shell.la $(TEST_LIBS)

check_PROGRAMS += check_state_dir
TESTS += check_state_dir
check_state_dir_SOURCES = tests/unit/check_state_dir.c
check_state_dir_LDADD = libpkeyd-shell.la $(TEST_LIBS)
