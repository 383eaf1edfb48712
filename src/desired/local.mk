# desired/: what every table should hold
libpkeyd_core_la_SOURCES += \
	src/desired/desired.c \
	src/desired/desired.h
