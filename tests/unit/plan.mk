# unit tests of src/plan and src/desired
check_PROGRAMS += check_plan
TESTS += check_plan
check_plan_SOURCES = tests/unit/check_plan.c tests/unit/fake_fabric.c tests/unit/fake_fabric.h
check_plan_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_plan_rules
TESTS += check_plan_rules
check_plan_rules_SOURCES = tests/unit/check_plan_rules.c tests/unit/fake_fabric.c tests/unit/fake_fabric.h
check_plan_rules_LDADD = $(TEST_LIBS)

# and of src/reconcile.c
check_PROGRAMS += check_reconcile
TESTS += check_reconcile
check_reconcile_SOURCES = tests/unit/check_reconcile.c tests/unit/fake_fabric.c tests/unit/fake_fabric.h
check_reconcile_LDADD = $(TEST_LIBS)
