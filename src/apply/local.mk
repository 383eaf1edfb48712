# apply/
libpkeyd_core_la_SOURCES += \
	src/apply/apply.h
