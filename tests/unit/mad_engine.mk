# unit tests of src/mad_engine
check_PROGRAMS += check_mad_engine
TESTS += check_mad_engine
check_mad_engine_SOURCES = tests/unit/check_mad_engine.c
check_mad_engine_LDADD = $(TEST_LIBS)
