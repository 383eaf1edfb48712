# apply/: carries out a plan
libpkeyd_core_la_SOURCES += \
	src/apply/apply.c \
	src/apply/apply.h \
	src/apply/apply_admission.c \
	src/apply/apply_internal.h \
	src/apply/apply_read_back.c \
	src/apply/apply_tables.c
