# settings/
libpkeyd_core_la_SOURCES += \
	src/settings/settings.c \
	src/settings/settings.h
