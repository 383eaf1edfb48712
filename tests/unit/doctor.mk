# unit tests of src/doctor
check_PROGRAMS += check_doctor check_probe
TESTS += check_doctor check_probe
check_doctor_SOURCES = tests/unit/check_doctor.c
check_doctor_LDADD = $(TEST_LIBS)
check_probe_SOURCES = tests/unit/check_probe.c
check_probe_LDADD = $(TEST_LIBS)
