# unit tests of src/notices and of what src/ib knows of the SA
check_PROGRAMS += check_notices check_sa
TESTS += check_notices check_sa
check_notices_SOURCES = tests/unit/check_notices.c
check_notices_LDADD = $(TEST_LIBS)
check_sa_SOURCES = tests/unit/check_sa.c
check_sa_LDADD = $(TEST_LIBS)
