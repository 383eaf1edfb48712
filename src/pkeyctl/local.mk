# pkeyctl/: the tool
bin_PROGRAMS += pkeyctl
pkeyctl_SOURCES = \
	src/pkeyctl/ask.c \
	src/pkeyctl/ask.h \
	src/pkeyctl/bus_client.c \
	src/pkeyctl/bus_client.h \
	src/pkeyctl/command_apply.c \
	src/pkeyctl/command_check.c \
	src/pkeyctl/command_daemon.c \
	src/pkeyctl/command_explain.c \
	src/pkeyctl/command_forget.c \
	src/pkeyctl/command_once.c \
	src/pkeyctl/command_plan.c \
	src/pkeyctl/command_show.c \
	src/pkeyctl/command_verify.c \
	src/pkeyctl/command_violations.c \
	src/pkeyctl/command_watch.c \
	src/pkeyctl/commands.h \
	src/pkeyctl/context.c \
	src/pkeyctl/context.h \
	src/pkeyctl/doc.c \
	src/pkeyctl/doc.h \
	src/pkeyctl/command_export.c \
	src/pkeyctl/command_import.c \
	src/pkeyctl/result_json.h \
	src/pkeyctl/json_daemon.c \
	src/pkeyctl/json_explain.c \
	src/pkeyctl/json_held.c \
	src/pkeyctl/json_plan.c \
	src/pkeyctl/json_show.c \
	src/pkeyctl/pkeyctl.c \
	src/pkeyctl/pkeyctl_options.c \
	src/pkeyctl/pkeyctl_options.h \
	src/pkeyctl/output.c \
	src/pkeyctl/output.h \
	src/pkeyctl/output_json.c \
	src/pkeyctl/output_result.c \
	src/pkeyctl/output_text.c \
	src/pkeyctl/pipeline.c \
	src/pkeyctl/pipeline.h \
	src/pkeyctl/progress.c \
	src/pkeyctl/progress.h \
	src/pkeyctl/session.c \
	src/pkeyctl/session.h \
	src/pkeyctl/text_table.c \
	src/pkeyctl/text_table.h \
	src/pkeyctl/result_text.h \
	src/pkeyctl/text_apply.c \
	src/pkeyctl/text_daemon.c \
	src/pkeyctl/text_explain.c \
	src/pkeyctl/text_held.c \
	src/pkeyctl/text_plan.c \
	src/pkeyctl/text_show.c
pkeyctl_SOURCES += src/pkeyctl/command_local.c src/pkeyctl/host_tables.c src/pkeyctl/host_tables.h src/pkeyctl/json_verify.c \
	src/pkeyctl/text_verify.c
pkeyctl_SOURCES += src/pkeyctl/command_doctor.c src/pkeyctl/json_doctor.c src/pkeyctl/text_doctor.c
pkeyctl_LDADD = libpkeyd-shell.la $(SMARTCOLS_LIBS)
