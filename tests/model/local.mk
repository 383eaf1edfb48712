# tests/model/: the rule as a short Python program, compared with rule_judge, the knowledge and the gate.
check_PROGRAMS += tests/model/judge
tests_model_judge_SOURCES = tests/model/judge.c
tests_model_judge_LDADD = libpkeyd-core.la
TESTS += tests/model/check_rule_model.py
EXTRA_DIST += tests/model/check_rule_model.py tests/model/rule_model.py
