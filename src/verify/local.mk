# verify/
libpkeyd_core_la_SOURCES += \
	src/verify/changes.c \
	src/verify/changes.h \
	src/verify/explain.c \
	src/verify/explain.h \
	src/verify/verbs_tables.c \
	src/verify/verbs_tables.h \
	src/verify/verify.c \
	src/verify/verify.h
