# notices/
libpkeyd_core_la_SOURCES += \
	src/notices/notices.h
