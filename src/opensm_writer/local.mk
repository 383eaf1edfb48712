# opensm_writer/: OpenSM's partition file, written by pkeyd
libpkeyd_core_la_SOURCES += \
	src/opensm_writer/opensm_writer.c \
	src/opensm_writer/opensm_writer.h \
	src/opensm_writer/opensm_writer_check.c \
	src/opensm_writer/opensm_writer_file.c \
	src/opensm_writer/opensm_writer_internal.h \
	src/opensm_writer/opensm_writer_phases.c
