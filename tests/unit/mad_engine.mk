# unit tests of src/mad_engine
check_PROGRAMS += check_mad_engine check_dispatcher
TESTS += check_mad_engine check_dispatcher
check_mad_engine_SOURCES = tests/unit/check_mad_engine.c
check_mad_engine_LDADD = $(TEST_LIBS)
check_dispatcher_SOURCES = tests/unit/check_dispatcher.c
check_dispatcher_LDADD = $(TEST_LIBS)
