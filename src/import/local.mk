# import/: partitions.conf -> partitions.yaml
libpkeyd_core_la_SOURCES += \
	src/import/import.c \
	src/import/import.h \
	src/import/import_check.c \
	src/import/import_names.c \
	src/import/import_print.c \
	src/import/import_reduce.c
