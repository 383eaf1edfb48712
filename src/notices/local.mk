# notices/
libpkeyd_core_la_SOURCES += \
	src/notices/notices.c \
	src/notices/notices.h
