# watch/: what changed from one sweep to the next
libpkeyd_core_la_SOURCES += \
	src/watch/rewrites.c \
	src/watch/rewrites.h \
	src/watch/watch.c \
	src/watch/watch.h
