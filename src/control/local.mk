# control/
libpkeyd_core_la_SOURCES += \
	src/control/backoff.h \
	src/control/confirm.c \
	src/control/confirm.h \
	src/control/control.c \
	src/control/control.h \
	src/control/control_internal.c \
	src/control/control_internal.h \
	src/control/lease_sweep.c \
	src/control/lease_sweep.h \
	src/control/leasing.c \
	src/control/leasing.h \
	src/control/reload.c \
	src/control/reload.h \
	src/control/schedule.c \
	src/control/schedule.h \
	src/control/store_sync.c \
	src/control/store_sync.h \
	src/control/sweep.c \
	src/control/sweep.h \
	src/control/sweep_decide.c \
	src/control/sweep_lock.c \
	src/control/sweep_once.c \
	src/control/sweep_plan.c \
	src/control/sweep_steps.c \
	src/control/sweep_steps.h \
	src/control/sweep_write.c
