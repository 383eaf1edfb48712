# violations/
libpkeyd_core_la_SOURCES += \
	src/violations/attribution.c \
	src/violations/attribution.h \
	src/violations/attribution_notice.c \
	src/violations/history.c \
	src/violations/history.h \
	src/violations/lids.c \
	src/violations/lids.h \
	src/violations/poll.h \
	src/violations/scene.h \
	src/violations/standing.c \
	src/violations/standing.h \
	src/violations/violations.h \
	src/violations/words.c \
	src/violations/words.h
