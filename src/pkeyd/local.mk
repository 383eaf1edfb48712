# pkeyd/: the daemon
sbin_PROGRAMS += pkeyd
pkeyd_SOURCES = \
	src/pkeyd/bus.c \
	src/pkeyd/bus.h \
	src/pkeyd/bus_lease_message.c \
	src/pkeyd/bus_lease_message.h \
	src/pkeyd/bus_leases.c \
	src/pkeyd/bus_leases.h \
	src/pkeyd/bus_message.c \
	src/pkeyd/bus_message.h \
	src/pkeyd/bus_status.c \
	src/pkeyd/bus_status.h \
	src/pkeyd/bus_violations.c \
	src/pkeyd/bus_violations.h \
	src/pkeyd/daemon.c \
	src/pkeyd/daemon.h \
	src/pkeyd/forward.c \
	src/pkeyd/forward.h \
	src/pkeyd/journal.c \
	src/pkeyd/journal.h \
	src/pkeyd/load.c \
	src/pkeyd/load.h \
	src/pkeyd/metrics_file.c \
	src/pkeyd/metrics_file.h \
	src/pkeyd/monitor.c \
	src/pkeyd/monitor.h \
	src/pkeyd/notify.c \
	src/pkeyd/notify.h \
	src/pkeyd/pkeyd.c \
	src/pkeyd/pkeyd_options.c \
	src/pkeyd/pkeyd_options.h \
	src/pkeyd/violation_list.h \
	src/pkeyd/violation_text.c \
	src/pkeyd/violation_text.h
pkeyd_LDADD = libpkeyd-shell.la libpkeyd-core.la $(SYSTEMD_LIBS) $(JANSSON_LIBS)
