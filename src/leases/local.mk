# leases/
libpkeyd_core_la_SOURCES += \
	src/leases/lease_edit.c \
	src/leases/lease_life.c \
	src/leases/lease_policy.c \
	src/leases/lease_request.c \
	src/leases/leases.c \
	src/leases/leases.h \
	src/leases/leases_internal.h
