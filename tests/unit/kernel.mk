# unit tests of local verification: src/verify/kernel.c, src/policy/policy_local.c
check_PROGRAMS += check_kernel
TESTS += check_kernel
check_kernel_SOURCES = tests/unit/check_kernel.c tests/unit/policy_fixture.h
check_kernel_LDADD = $(TEST_LIBS)
