# conditions/: what lasts from one sweep to the next, and is logged once
libpkeyd_core_la_SOURCES += \
	src/conditions/freezer.c \
	src/conditions/freezer.h \
	src/conditions/identity.c \
	src/conditions/identity.h
