# unit tests of src/apply
check_PROGRAMS += check_apply
TESTS += check_apply
check_apply_SOURCES = tests/unit/check_apply.c tests/unit/fake_fabric.c tests/unit/fake_fabric.h \
	tests/unit/fail_alloc.c tests/unit/fail_alloc.h
check_apply_LDADD = $(TEST_LIBS)
check_apply_LDFLAGS = $(AM_LDFLAGS) $(FAIL_ALLOC)
