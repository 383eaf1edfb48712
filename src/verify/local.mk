# verify/
libpkeyd_core_la_SOURCES += \
	src/verify/verify.c \
	src/verify/verify.h
