# ib/
libpkeyd_core_la_SOURCES += \
	src/ib/field.h \
	src/ib/m_keys.c \
	src/ib/m_keys.h \
	src/ib/mad.c \
	src/ib/mad.h \
	src/ib/multicast.c \
	src/ib/multicast.h \
	src/ib/pma.c \
	src/ib/pma.h \
	src/ib/sa.c \
	src/ib/sa.h \
	src/ib/smp.c \
	src/ib/smp.h \
	src/ib/types.c \
	src/ib/types.h
