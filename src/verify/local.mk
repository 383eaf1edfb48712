# verify/
libpkeyd_core_la_SOURCES += \
	src/verify/verify.c \
	src/verify/verify.h
libpkeyd_core_la_SOURCES += src/verify/explain.c src/verify/explain.h
libpkeyd_core_la_SOURCES += src/verify/verbs_tables.c src/verify/verbs_tables.h
