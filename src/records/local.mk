# records/: what outlives a run, as records of a store
libpkeyd_core_la_SOURCES += \
	src/records/stored_records.c \
	src/records/stored_records.h
