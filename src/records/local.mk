# records/: what outlives a run, as records of a store
libpkeyd_core_la_SOURCES += \
	src/records/generation_records.c \
	src/records/generation_records.h \
	src/records/layout_records.c \
	src/records/layout_records.h \
	src/records/lease_json.c \
	src/records/lease_json.h \
	src/records/lease_records.c \
	src/records/lease_records.h \
	src/records/stored_records.c \
	src/records/stored_records.h
