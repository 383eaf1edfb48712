# plan/: observed x desired -> phases of block writes
libpkeyd_core_la_SOURCES += \
	src/plan/index_memory.c \
	src/plan/index_memory.h \
	src/plan/plan.c \
	src/plan/plan.h \
	src/plan/port_plan.c \
	src/plan/port_plan.h
