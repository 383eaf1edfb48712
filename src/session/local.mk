# session/: what the commands of pkeyctl share
pkeyctl_SOURCES += \
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
	src/session/policy_edit.c \
	src/session/policy_edit.h \
	src/session/progress.c \
	src/session/progress.h \
	src/session/session.c \
	src/session/session.h \
	src/session/text_table.c \
	src/session/text_table.h
