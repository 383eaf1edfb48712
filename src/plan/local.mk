# plan/
libpkeyd_core_la_SOURCES += \
	src/plan/index_memory.h \
	src/plan/plan.h
