# opensm/: OpenSM's files, read as OpenSM reads them and written so that it cannot misread them
libpkeyd_core_la_SOURCES += \
	src/opensm/admission.c \
	src/opensm/admission.h \
	src/opensm/given.c \
	src/opensm/given.h \
	src/opensm/leaf_filter.c \
	src/opensm/leaf_filter.h \
	src/opensm/opensm_conf.c \
	src/opensm/opensm_conf.h \
	src/opensm/opensm_numbers.c \
	src/opensm/opensm_numbers.h \
	src/opensm/partitions_conf.c \
	src/opensm/partitions_conf.h \
	src/opensm/partitions_conf_apply.c \
	src/opensm/partitions_conf_reader.h \
	src/opensm/partitions_conf_tokens.c \
	src/opensm/partitions_file.c \
	src/opensm/partitions_file.h \
	src/opensm/phases.c \
	src/opensm/phases.h \
	src/opensm/transitions.c \
	src/opensm/transitions.h \
	src/opensm/unmanaged.c \
	src/opensm/unmanaged.h
