# rest/
libpkeyd_core_la_SOURCES += \
	src/rest/rest.c \
	src/rest/rest.h \
	src/rest/rest_answer.c \
	src/rest/rest_change.c \
	src/rest/rest_internal.h \
	src/rest/rest_values.c
