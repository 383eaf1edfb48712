# subnet/
libpkeyd_core_la_SOURCES += \
	src/subnet/builder.c \
	src/subnet/description.c \
	src/subnet/fold.c \
	src/subnet/fold.h \
	src/subnet/known.c \
	src/subnet/known.h \
	src/subnet/layout.c \
	src/subnet/layout.h \
	src/subnet/observed.c \
	src/subnet/observed.h \
	src/subnet/subnet.c \
	src/subnet/subnet.h \
	src/subnet/survey.c \
	src/subnet/survey.h \
	src/subnet/topology.c
