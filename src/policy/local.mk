# policy/
libpkeyd_core_la_SOURCES += \
	src/policy/policy.h
