# tests/: unit tests (Check) link only the core; system tests and lints are scripts.
AM_TESTS_ENVIRONMENT = top_srcdir='$(top_srcdir)'; top_builddir='$(top_builddir)'; abs_top_srcdir='$(abs_top_srcdir)'; \
	abs_top_builddir='$(abs_top_builddir)'; PYTHONDONTWRITEBYTECODE=1; CK_DEFAULT_TIMEOUT=120; \
	export top_srcdir top_builddir abs_top_srcdir abs_top_builddir PYTHONDONTWRITEBYTECODE CK_DEFAULT_TIMEOUT;
TEST_EXTENSIONS = .py .sh
PY_LOG_COMPILER = $(PYTHON)
SH_LOG_COMPILER = $(BASH_PATH)

# for programs with tests/unit/fail_alloc.c
FAIL_ALLOC = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup,--wrap=arena_alloc_array

if HAVE_CHECK
AM_CFLAGS += $(CHECK_CFLAGS)
TEST_LIBS = libpkeyd-core.la $(CHECK_LIBS)
endif

# The order of TESTS: the simulation, which computes for minutes, then scenarios, which wait, then what computes. With make -j they
# share the processors well.
include tests/fabsim/local.mk
include tests/system/local.mk
if HAVE_CHECK
include tests/unit/ib.mk
include tests/unit/util.mk
include tests/unit/store.mk
include tests/unit/subnet.mk
include tests/unit/discovery.mk
include tests/unit/policy.mk
include tests/unit/settings.mk
include tests/unit/plan.mk
include tests/unit/knowledge.mk
include tests/unit/opensm.mk
include tests/unit/apply.mk
include tests/unit/explain.mk
include tests/unit/mad_engine.mk
include tests/unit/control.mk
include tests/unit/watch.mk
include tests/unit/notices.mk
include tests/unit/violations.mk
include tests/unit/verbs_tables.mk
include tests/unit/violations_words.mk
include tests/unit/shell.mk
include tests/unit/pkeyd.mk
include tests/unit/doctor.mk
include tests/unit/m_key.mk
include tests/unit/metrics.mk
include tests/unit/import.mk
include tests/unit/rest.mk
endif
# Not in the fragments above: the tarball has them also if it is made where Check is not installed.
EXTRA_DIST += tests/unit/check_port_session.sh tests/unit/metrics.prom
include tests/fuzz/local.mk
include tests/model/local.mk
include tests/mutate/local.mk
include tests/golden/local.mk
include tests/lint/local.mk
include tests/bench/local.mk
include tests/kernel/local.mk
