# apply/: carries a plan out
libpkeyd_core_la_SOURCES += \
	src/apply/apply.c \
	src/apply/apply.h
