# tests/bench/: speed and memory beside the alternatives; not part of make check. See tests/bench/bench.
EXTRA_PROGRAMS = tests/bench/bareloop
tests_bench_bareloop_SOURCES = tests/bench/bareloop.c
tests_bench_bareloop_CFLAGS = $(PKEYD_C_STD) $(WARN_CFLAGS) -O2 $(IBMAD_CFLAGS) $(IBUMAD_CFLAGS)
tests_bench_bareloop_LDFLAGS =
tests_bench_bareloop_LDADD = $(IBMAD_LIBS) $(IBUMAD_LIBS)

tests/bench/lastset.so: tests/bench/lastset.c tests/bench/$(am__dirstamp)
	$(AM_V_CCLD)$(CC) $(PKEYD_C_STD) $(WARN_CFLAGS) $(IBUMAD_CFLAGS) $(CPPFLAGS) -D_GNU_SOURCE $(CFLAGS) -fPIC -shared \
		-o $@ $(srcdir)/tests/bench/lastset.c -ldl -pthread

# The check of the written tables needs the reader of tests/system, which needs libibnetdisc.
if HAVE_IBNETDISC
bench-programs: tests/system/readtables$(EXEEXT) tests/bench/bareloop$(EXEEXT) tests/bench/lastset.so
else
bench-programs:
	@echo "the measurements need libibnetdisc" >&2; exit 1
endif
.PHONY: bench-programs

CLEANFILES += tests/bench/lastset.so tests/bench/bareloop$(EXEEXT)
EXTRA_DIST += tests/bench/bench tests/bench/bench.py tests/bench/hostlists.py tests/bench/leases.py tests/bench/lastset.c
