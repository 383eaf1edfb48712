# discovery/
libpkeyd_core_la_SOURCES += \
	src/discovery/links.c \
	src/discovery/links.h \
	src/discovery/opensm_neighbors.c
