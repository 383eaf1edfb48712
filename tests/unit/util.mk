# unit tests of src/util
check_PROGRAMS += check_hash_index
TESTS += check_hash_index
check_hash_index_SOURCES = tests/unit/check_hash_index.c
check_hash_index_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_scan
TESTS += check_scan
check_scan_SOURCES = tests/unit/check_scan.c
check_scan_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_vector
TESTS += check_vector
check_vector_SOURCES = tests/unit/check_vector.c
check_vector_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_no_memory
TESTS += check_no_memory
check_no_memory_SOURCES = tests/unit/check_no_memory.c tests/unit/fail_alloc.c tests/unit/fail_alloc.h
check_no_memory_LDFLAGS = $(AM_LDFLAGS) $(FAIL_ALLOC)
check_no_memory_LDADD = $(TEST_LIBS)
