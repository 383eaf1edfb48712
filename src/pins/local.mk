# pins/
libpkeyd_core_la_SOURCES += \
	src/pins/claims.c \
	src/pins/claims.h \
	src/pins/pins.c \
	src/pins/pins.h
