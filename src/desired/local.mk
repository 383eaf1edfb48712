# desired/
libpkeyd_core_la_SOURCES += \
	src/desired/desired.h
