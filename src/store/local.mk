# store/: records, transactions
libpkeyd_core_la_SOURCES += \
	src/store/store.c \
	src/store/store.h
