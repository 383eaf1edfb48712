# unit tests of what src/pkeyctl computes; what it prints is in tests/system/
check_PROGRAMS += check_changes check_import
TESTS += check_changes check_import
check_changes_SOURCES = tests/unit/check_changes.c tests/unit/fake_fabric.c tests/unit/fake_fabric.h src/pkeyctl/changes.c
check_changes_LDADD = $(TEST_LIBS)
check_import_SOURCES = tests/unit/check_import.c tests/unit/policy_fixture.h src/pkeyctl/fold.c src/pkeyctl/import.c \
	src/pkeyctl/import_check.c src/pkeyctl/import_names.c src/pkeyctl/import_print.c src/pkeyctl/import_reduce.c
check_import_LDADD = $(TEST_LIBS)
