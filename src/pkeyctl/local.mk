# pkeyctl/: the commands
bin_PROGRAMS += pkeyctl
pkeyctl_SOURCES += \
	src/pkeyctl/apply_without_daemon.c \
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
	src/pkeyctl/command_plan.c \
	src/pkeyctl/command_show.c \
	src/pkeyctl/command_show_matrix.c \
	src/pkeyctl/command_table.c \
	src/pkeyctl/command_verify.c \
	src/pkeyctl/command_verify_local.c \
	src/pkeyctl/command_violations.c \
	src/pkeyctl/commands.h \
	src/pkeyctl/completion.c \
	src/pkeyctl/completion_names.c \
	src/pkeyctl/completion_names.h \
	src/pkeyctl/pkeyctl.c \
	src/pkeyctl/plan_reach.c
pkeyctl_LDADD = libpkeyd-shell.la $(SMARTCOLS_LIBS)
