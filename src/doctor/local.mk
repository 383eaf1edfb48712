# doctor/
libpkeyd_core_la_SOURCES += \
	src/doctor/diagnose.c \
	src/doctor/diagnose.h \
	src/doctor/diagnose_host.c \
	src/doctor/diagnose_names.c \
	src/doctor/diagnose_protection.c \
	src/doctor/diagnose_tables.c \
	src/doctor/diagnosis-codes.def \
	src/doctor/doctor.c \
	src/doctor/doctor.h \
	src/doctor/probe.c \
	src/doctor/probe.h
