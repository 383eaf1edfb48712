# unit tests of src/knowledge and src/gate
check_PROGRAMS += check_rule
TESTS += check_rule
check_rule_SOURCES = tests/unit/check_rule.c
check_rule_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_knowledge
TESTS += check_knowledge
check_knowledge_SOURCES = tests/unit/check_knowledge.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h \
	tests/unit/knowledge_naive.c tests/unit/knowledge_naive.h
check_knowledge_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_held
TESTS += check_held
check_held_SOURCES = tests/unit/check_held.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h \
	tests/unit/knowledge_naive.c tests/unit/knowledge_naive.h
check_held_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_transitions
TESTS += check_transitions
check_transitions_SOURCES = tests/unit/check_transitions.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h
check_transitions_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_gate
TESTS += check_gate
check_gate_SOURCES = tests/unit/check_gate.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h
check_gate_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_table_records
TESTS += check_table_records
check_table_records_SOURCES = tests/unit/check_table_records.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h
check_table_records_LDADD = $(TEST_LIBS)
check_PROGRAMS += check_held_text
TESTS += check_held_text
check_held_text_SOURCES = tests/unit/check_held_text.c tests/unit/knowledge_fixture.c tests/unit/knowledge_fixture.h
check_held_text_LDADD = $(TEST_LIBS)
