# pkeyd_rest/: the REST door
if ENABLE_REST
sbin_PROGRAMS += pkeyd-rest
pkeyd_rest_SOURCES = \
	src/pkeyd_rest/door.c \
	src/pkeyd_rest/door.h \
	src/pkeyd_rest/door-events.def \
	src/pkeyd_rest/door_conf.c \
	src/pkeyd_rest/door_conf.h \
	src/pkeyd_rest/door_journal.c \
	src/pkeyd_rest/door_journal.h \
	src/pkeyd_rest/http.c \
	src/pkeyd_rest/http.h \
	src/pkeyd_rest/http_connection.c \
	src/pkeyd_rest/http_internal.h \
	src/pkeyd_rest/http_loop.c \
	src/pkeyd_rest/http_request.c \
	src/pkeyd_rest/jobs.c \
	src/pkeyd_rest/jobs.h \
	src/pkeyd_rest/lease_messages.c \
	src/pkeyd_rest/lease_messages.h \
	src/pkeyd_rest/listeners.c \
	src/pkeyd_rest/listeners.h \
	src/pkeyd_rest/login.c \
	src/pkeyd_rest/login.h \
	src/pkeyd_rest/pkeyd_bus.c \
	src/pkeyd_rest/pkeyd_bus.h \
	src/pkeyd_rest/pkeyd_rest.c
pkeyd_rest_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS) $(GNUTLS_CFLAGS)
pkeyd_rest_LDADD = libpkeyd-shell.la libpkeyd-core.la $(SYSTEMD_LIBS) $(JANSSON_LIBS) $(CRYPT_LIBS) $(MICROHTTPD_LIBS) $(GNUTLS_LIBS)
endif
