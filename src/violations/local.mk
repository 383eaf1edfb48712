# violations/
libpkeyd_core_la_SOURCES += \
	src/violations/attribution.c \
	src/violations/attribution.h \
	src/violations/attribution_notice.c \
	src/violations/book.c \
	src/violations/book.h \
	src/violations/counter.c \
	src/violations/counter.h \
	src/violations/history.c \
	src/violations/history.h \
	src/violations/hosts.c \
	src/violations/lids.c \
	src/violations/lids.h \
	src/violations/list.h \
	src/violations/looks.c \
	src/violations/poll.c \
	src/violations/poll.h \
	src/violations/poll_targets.c \
	src/violations/poll_targets.h \
	src/violations/records.c \
	src/violations/scene.h \
	src/violations/standing.c \
	src/violations/standing.h \
	src/violations/telling.c \
	src/violations/violations.h \
	src/violations/words.c \
	src/violations/words.h
