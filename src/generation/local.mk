# generation/: a policy and its settings, as both files were at one time
libpkeyd_core_la_SOURCES += \
	src/generation/generation.c \
	src/generation/generation.h
