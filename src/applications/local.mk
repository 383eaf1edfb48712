# applications/
libpkeyd_core_la_SOURCES += \
	src/applications/applications.c \
	src/applications/applications.h
