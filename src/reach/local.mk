# reach/
libpkeyd_core_la_SOURCES += \
	src/reach/classes.c \
	src/reach/classes.h \
	src/reach/kinds.c \
	src/reach/matrix.c \
	src/reach/matrix.h \
	src/reach/reach.c \
	src/reach/reach.h \
	src/reach/reach_text.c \
	src/reach/reach_text.h
