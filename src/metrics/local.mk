# metrics/
libpkeyd_core_la_SOURCES += \
	src/metrics/metrics.c \
	src/metrics/metrics.h
