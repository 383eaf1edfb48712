# pkeyctl/: the tool
bin_PROGRAMS += pkeyctl
pkeyctl_SOURCES = \
	src/pkeyctl/bus_client.c \
	src/pkeyctl/bus_client.h \
	src/pkeyctl/command_apply.c \
	src/pkeyctl/command_check.c \
	src/pkeyctl/command_daemon.c \
	src/pkeyctl/command_doctor.c \
	src/pkeyctl/command_explain.c \
	src/pkeyctl/command_export.c \
	src/pkeyctl/command_forget.c \
	src/pkeyctl/command_held.c \
	src/pkeyctl/command_import.c \
	src/pkeyctl/command_local.c \
	src/pkeyctl/command_plan.c \
	src/pkeyctl/command_show.c \
	src/pkeyctl/command_verify.c \
	src/pkeyctl/command_violations.c \
	src/pkeyctl/commands.h \
	src/pkeyctl/context.h \
	src/pkeyctl/doc.c \
	src/pkeyctl/doc.h \
	src/pkeyctl/output.c \
	src/pkeyctl/output.h \
	src/pkeyctl/pipeline.c \
	src/pkeyctl/pipeline.h \
	src/pkeyctl/pkeyctl.c \
	src/pkeyctl/pkeyctl_options.c \
	src/pkeyctl/pkeyctl_options.h \
	src/pkeyctl/progress.c \
	src/pkeyctl/progress.h \
	src/pkeyctl/session.c \
	src/pkeyctl/session.h \
	src/pkeyctl/text_table.c \
	src/pkeyctl/text_table.h
pkeyctl_LDADD = libpkeyd-shell.la $(SMARTCOLS_LIBS)
