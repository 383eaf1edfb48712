# violations/
libpkeyd_core_la_SOURCES += \
	src/violations/attribution.h \
	src/violations/history.h \
	src/violations/poll.h \
	src/violations/violations.h
