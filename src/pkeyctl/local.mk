# pkeyctl/: the commands, with session/
bin_PROGRAMS += pkeyctl
pkeyctl_SOURCES += \
	src/pkeyctl/apply_here.c \
	src/pkeyctl/command_apply.c \
	src/pkeyctl/command_check.c \
	src/pkeyctl/command_confirm.c \
	src/pkeyctl/command_daemon.c \
	src/pkeyctl/command_doctor.c \
	src/pkeyctl/command_env.c \
	src/pkeyctl/command_explain.c \
	src/pkeyctl/command_export.c \
	src/pkeyctl/command_import.c \
	src/pkeyctl/command_lease.c \
	src/pkeyctl/command_local.c \
	src/pkeyctl/command_matrix.c \
	src/pkeyctl/command_plan.c \
	src/pkeyctl/command_replace.c \
	src/pkeyctl/command_show.c \
	src/pkeyctl/command_verify.c \
	src/pkeyctl/command_violations.c \
	src/pkeyctl/commands.h \
	src/pkeyctl/completion.c \
	src/pkeyctl/completion.h \
	src/pkeyctl/completion_names.c \
	src/pkeyctl/completion_names.h \
	src/pkeyctl/pkeyctl.c \
	src/pkeyctl/plan_reach.c \
	src/pkeyctl/policy_edit.c \
	src/pkeyctl/policy_edit.h \
	src/session/bus_client.c \
	src/session/bus_client.h \
	src/session/context.h \
	src/session/doc.c \
	src/session/doc.h \
	src/session/group_matrix.c \
	src/session/group_matrix.h \
	src/session/held_output.c \
	src/session/held_output.h \
	src/session/host_ports.c \
	src/session/host_ports.h \
	src/session/output.c \
	src/session/output.h \
	src/session/output_text.c \
	src/session/output_text.h \
	src/session/partitions.c \
	src/session/partitions.h \
	src/session/pipeline.c \
	src/session/pipeline.h \
	src/session/pkeyctl_options.c \
	src/session/pkeyctl_options.h \
	src/session/progress.c \
	src/session/progress.h \
	src/session/session.c \
	src/session/session.h \
	src/session/text_table.c \
	src/session/text_table.h
pkeyctl_LDADD = libpkeyd-shell.la $(SMARTCOLS_LIBS)
