# ib/
libpkeyd_core_la_SOURCES += \
	src/ib/multicast.c \
	src/ib/multicast.h \
	src/ib/smp.c \
	src/ib/smp.h \
	src/ib/types.c \
	src/ib/types.h
