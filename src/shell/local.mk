# shell/
libpkeyd_shell_la_SOURCES += \
	src/shell/discovery.h \
	src/shell/fabric.h \
	src/shell/file.h \
	src/shell/pump.h \
	src/shell/shell.h \
	src/shell/state_dir.h \
	src/shell/umad_port.h
libpkeyd_shell_la_SOURCES += src/shell/report.c src/shell/report.h
