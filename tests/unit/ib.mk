# unit tests of src/ib
check_PROGRAMS += check_ib
TESTS += check_ib
check_ib_SOURCES = tests/unit/check_ib.c
check_ib_LDADD = $(TEST_LIBS)
