# unit tests of src/opensm
check_PROGRAMS += check_partitions_file check_partitions_conf check_opensm_phases
TESTS += check_partitions_file check_partitions_conf check_opensm_phases
check_partitions_file_SOURCES = tests/unit/check_partitions_file.c tests/unit/partitions_find.h tests/unit/policy_fixture.h
check_partitions_file_LDADD = $(TEST_LIBS)
check_partitions_conf_SOURCES = tests/unit/check_partitions_conf.c tests/unit/partitions_find.h tests/unit/policy_fixture.h
check_partitions_conf_LDADD = $(TEST_LIBS)
check_opensm_phases_SOURCES = tests/unit/check_opensm_phases.c tests/unit/policy_fixture.h
check_opensm_phases_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_opensm_admission
TESTS += check_opensm_admission
check_opensm_admission_SOURCES = tests/unit/check_opensm_admission.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h
check_opensm_admission_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_opensm_numbers
TESTS += check_opensm_numbers
check_opensm_numbers_SOURCES = tests/unit/check_opensm_numbers.c
check_opensm_numbers_LDADD = $(TEST_LIBS)
