# tests/fabsim: a fabric that we command, and the core run against it in virtual time.
if HAVE_CHECK
check_PROGRAMS += check_fabsim
TESTS += check_fabsim
check_fabsim_SOURCES = tests/fabsim/check_fabsim.c $(FABSIM_FABRIC)
check_fabsim_LDADD = $(TEST_LIBS)
endif

FABSIM_FABRIC = tests/fabsim/fabric.c tests/fabsim/fabric.h tests/fabsim/agents.c
