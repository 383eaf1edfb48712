# gate/: judges every Set before it is sent
libpkeyd_core_la_SOURCES += \
	src/gate/gate.c \
	src/gate/gate.h
