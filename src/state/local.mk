# state/: what pkeyd remembers on this host
libpkeyd_shell_la_SOURCES += \
	src/state/directory_lock.c \
	src/state/directory_lock.h \
	src/state/etcd_place.c \
	src/state/etcd_place.h \
	src/state/sqlite_files.c \
	src/state/sqlite_files.h \
	src/state/sqlite_store.c \
	src/state/sqlite_store.h \
	src/state/state.c \
	src/state/state.h \
	src/state/state_copy.c \
	src/state/state_copy.h \
	src/state/state_import.c \
	src/state/state_import.h
