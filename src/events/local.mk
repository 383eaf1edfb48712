# events/: journal entries as data, and their texts
libpkeyd_core_la_SOURCES += \
	src/events/event_text.c \
	src/events/event_text.h \
	src/events/events.def \
	src/events/held_text.c \
	src/events/held_text.h \
	src/events/log.c \
	src/events/log.h
