# shell/
libpkeyd_shell_la_SOURCES += \
	src/shell/bus_fields.c \
	src/shell/bus_fields.h \
	src/shell/bus_properties.h \
	src/shell/clock.c \
	src/shell/fabric.c \
	src/shell/fabric.h \
	src/shell/file.c \
	src/shell/file.h \
	src/shell/ipoib_interface.c \
	src/shell/ipoib_interface.h \
	src/shell/journal_fields.c \
	src/shell/journal_fields.h \
	src/shell/local_port.c \
	src/shell/opened_port.c \
	src/shell/opened_port.h \
	src/shell/port_session.c \
	src/shell/port_session.h \
	src/shell/shell.h \
	src/shell/timer.h \
	src/shell/umad_port.c \
	src/shell/umad_port.h
libpkeyd_shell_la_SOURCES += src/shell/command_line.c src/shell/command_line.h
libpkeyd_shell_la_SOURCES += src/shell/findings_print.c src/shell/findings_print.h
libpkeyd_shell_la_SOURCES += src/shell/verbs_port.c src/shell/verbs_port.h
libpkeyd_shell_la_SOURCES += src/shell/secret.c src/shell/secret.h
libpkeyd_shell_la_SOURCES += src/shell/opensm_process.c src/shell/opensm_process.h
libpkeyd_shell_la_SOURCES += src/shell/opensm_program.c src/shell/opensm_program.h
libpkeyd_shell_la_SOURCES += src/shell/text_diff.c src/shell/text_diff.h
libpkeyd_shell_la_SOURCES += src/shell/user.c src/shell/user.h
