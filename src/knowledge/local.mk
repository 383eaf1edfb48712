# knowledge/: what is known of each P_Key table, and what is not
libpkeyd_core_la_SOURCES += \
	src/knowledge/bounds.c \
	src/knowledge/counts.c \
	src/knowledge/held.c \
	src/knowledge/held.h \
	src/knowledge/knowledge.c \
	src/knowledge/knowledge.h \
	src/knowledge/knowledge_internal.h \
	src/knowledge/presence.c \
	src/knowledge/rule.c \
	src/knowledge/rule.h \
	src/knowledge/table_records.c \
	src/knowledge/table_records.h \
	src/knowledge/tables.c
