# pkeyd/: the daemon
sbin_PROGRAMS += pkeyd
pkeyd_SOURCES = \
	src/pkeyd/bus.c \
	src/pkeyd/bus.h \
	src/pkeyd/bus_message.c \
	src/pkeyd/bus_message.h \
	src/pkeyd/bus_status.c \
	src/pkeyd/bus_status.h \
	src/pkeyd/daemon.c \
	src/pkeyd/daemon.h \
	src/pkeyd/events.def \
	src/pkeyd/generation.c \
	src/pkeyd/generation.h \
	src/pkeyd/head.c \
	src/pkeyd/head.h \
	src/pkeyd/journal.c \
	src/pkeyd/journal.h \
	src/pkeyd/main.c \
	src/pkeyd/notify.c \
	src/pkeyd/notify.h \
	src/pkeyd/options.c \
	src/pkeyd/options.h \
	src/pkeyd/own_port.c \
	src/pkeyd/own_port.h \
	src/pkeyd/pass.c \
	src/pkeyd/pass.h \
	src/pkeyd/picture.c \
	src/pkeyd/picture.h \
	src/pkeyd/say.c \
	src/pkeyd/say.h \
	src/pkeyd/state.c \
	src/pkeyd/state.h \
	src/pkeyd/violation_list.h
pkeyd_SOURCES += src/pkeyd/kernel.c src/pkeyd/kernel.h
pkeyd_SOURCES += src/pkeyd/monitor.c src/pkeyd/monitor.h src/pkeyd/say_violation.c src/pkeyd/say_violation.h
pkeyd_SOURCES += src/pkeyd/metrics_file.c src/pkeyd/metrics_file.h
pkeyd_SOURCES += src/pkeyd/opensm_writer.c src/pkeyd/opensm_writer.h
pkeyd_LDADD = libpkeyd-shell.la libpkeyd-core.la $(SYSTEMD_LIBS) $(JANSSON_LIBS)
