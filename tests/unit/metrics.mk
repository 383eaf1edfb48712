# unit tests of src/metrics
check_PROGRAMS += check_metrics
TESTS += check_metrics
check_metrics_SOURCES = tests/unit/check_metrics.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h
check_metrics_LDADD = $(TEST_LIBS)
