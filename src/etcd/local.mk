# etcd/: a store in an etcd cluster
libpkeyd_shell_la_SOURCES += \
	src/etcd/etcd.h \
	src/etcd/etcd_http.c \
	src/etcd/etcd_http.h \
	src/etcd/etcd_lease.c \
	src/etcd/etcd_lease.h \
	src/etcd/etcd_mailbox.c \
	src/etcd/etcd_mailbox.h \
	src/etcd/etcd_message.c \
	src/etcd/etcd_message.h \
	src/etcd/etcd_store.c \
	src/etcd/etcd_store.h
