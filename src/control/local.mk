# control/
libpkeyd_core_la_SOURCES += \
	src/control/generation.c \
	src/control/generation.h \
	src/control/snapshot.c \
	src/control/snapshot.h
