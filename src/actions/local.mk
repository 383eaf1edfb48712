# actions/: what control and its shells exchange
libpkeyd_core_la_SOURCES += \
	src/actions/action.c \
	src/actions/action.h \
	src/actions/actions.h \
	src/actions/event.h \
	src/actions/snapshot.c \
	src/actions/snapshot.h
