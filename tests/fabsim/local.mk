# tests/fabsim: the virtual fabric, and tests of the core on it in virtual time.
FABSIM_FABRIC = tests/fabsim/fabric.c tests/fabsim/fabric.h tests/fabsim/agents.c tests/fabsim/sa.c

# They take minutes: with make -j they begin first, so that neither runs alone at the end.
TESTS += tests/fabsim/check_simulate.sh
if HAVE_CHECK
TESTS += check_small
check_PROGRAMS += check_fabsim
TESTS += check_fabsim
check_fabsim_SOURCES = tests/fabsim/check_fabsim.c $(FABSIM_FABRIC)
check_fabsim_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_fabsim_notices
TESTS += check_fabsim_notices
check_fabsim_notices_SOURCES = tests/fabsim/check_fabsim_notices.c tests/fabsim/events.c tests/fabsim/events.h \
	tests/fabsim/prng.h $(FABSIM_FABRIC)
check_fabsim_notices_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_fabsim_doctor
TESTS += check_fabsim_doctor
check_fabsim_doctor_SOURCES = tests/fabsim/check_fabsim_doctor.c $(FABSIM_FABRIC)
check_fabsim_doctor_LDADD = $(TEST_LIBS)

# dropped packets in the violation table
check_PROGRAMS += check_refused
TESTS += check_refused
check_refused_SOURCES = tests/fabsim/check_refused.c tests/fabsim/prng.h $(FABSIM_FABRIC)
check_refused_LDADD = $(TEST_LIBS)

# ... and in the reports
check_PROGRAMS += check_messages
TESTS += check_messages
check_messages_SOURCES = tests/fabsim/check_messages.c tests/fabsim/prng.h $(FABSIM_FABRIC)
check_messages_LDADD = $(TEST_LIBS)

check_PROGRAMS += check_small
check_small_SOURCES = tests/fabsim/check_small.c tests/unit/fake_fabric.c tests/unit/fake_fabric.h
check_small_LDADD = $(TEST_LIBS)
endif

# The window: a benchmark in virtual time, which is also a test.
check_PROGRAMS += tests/fabsim/bench_window
TESTS += tests/fabsim/bench_window
tests_fabsim_bench_window_SOURCES = tests/fabsim/bench_window.c tests/fabsim/events.c tests/fabsim/events.h $(FABSIM_FABRIC)
tests_fabsim_bench_window_LDADD = libpkeyd-core.la

# Histories of control and everything below it, in virtual time.
check_PROGRAMS += tests/fabsim/simulate
tests_fabsim_simulate_SOURCES = tests/fabsim/simulate.c tests/fabsim/sim.h tests/fabsim/events.c tests/fabsim/events.h \
	tests/fabsim/prng.h tests/fabsim/world.c tests/fabsim/scenes.c tests/fabsim/intent.c tests/fabsim/clocks.c tests/fabsim/keys.c tests/fabsim/head.c \
	tests/fabsim/opensm.c tests/fabsim/process.c tests/fabsim/wire.c tests/fabsim/observer.c \
	tests/fabsim/promises.c tests/fabsim/clients.c tests/fabsim/mailbox.c tests/fabsim/ledger.c \
	tests/unit/fail_alloc.c tests/unit/fail_alloc.h $(FABSIM_FABRIC)
tests_fabsim_simulate_LDFLAGS = $(AM_LDFLAGS) $(FAIL_ALLOC)
tests_fabsim_simulate_LDADD = libpkeyd-core.la
EXTRA_DIST += tests/fabsim/check_simulate.sh tests/fabsim/seeds
