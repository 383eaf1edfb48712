# discovery/
libpkeyd_core_la_SOURCES += \
	src/discovery/answers.c \
	src/discovery/discovery.c \
	src/discovery/discovery.h \
	src/discovery/links.c \
	src/discovery/links.h \
	src/discovery/opensm_neighbors.c \
	src/discovery/walk.c \
	src/discovery/walk.h \
	src/discovery/walk_snapshot.c
