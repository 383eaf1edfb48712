# mad_engine/
libpkeyd_core_la_SOURCES += \
	src/mad_engine/mad_engine.h
