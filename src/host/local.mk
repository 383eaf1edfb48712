# host/: the ports of this host: their state, whether the master SM is on them, what the kernel has of their tables
libpkeyd_core_la_SOURCES += \
	src/host/port_key.c \
	src/host/port_key.h \
	src/host/port_query.c \
	src/host/port_query.h \
	src/host/sm_follow.c \
	src/host/sm_follow.h \
	src/host/verbs_check.c \
	src/host/verbs_check.h
