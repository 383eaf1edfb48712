# control/
libpkeyd_core_la_SOURCES += \
	src/control/action.h \
	src/control/event_text.c \
	src/control/event_text.h \
	src/control/events.def \
	src/control/generation.c \
	src/control/generation.h \
	src/control/log.c \
	src/control/log.h \
	src/control/opensm_writer.c \
	src/control/opensm_writer.h \
	src/control/port_query.c \
	src/control/port_query.h \
	src/control/sm_follow.c \
	src/control/sm_follow.h \
	src/control/snapshot.c \
	src/control/snapshot.h \
	src/control/verbs_check.c \
	src/control/verbs_check.h
