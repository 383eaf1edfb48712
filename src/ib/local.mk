# ib/
libpkeyd_core_la_SOURCES += \
	src/ib/smp.h \
	src/ib/types.h
