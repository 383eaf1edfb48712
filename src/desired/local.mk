# desired/: what every table should hold
libpkeyd_core_la_SOURCES += \
	src/desired/desired.c \
	src/desired/desired.h
libpkeyd_core_la_SOURCES += src/desired/assume.c src/desired/assume.h
