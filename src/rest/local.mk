# rest/: a program that uses rest_authenticate() links $(CRYPT_LIBS), too
libpkeyd_core_la_SOURCES += \
	src/rest/rest.c \
	src/rest/rest.h \
	src/rest/rest_answer.c \
	src/rest/rest_change.c \
	src/rest/rest_conf.c \
	src/rest/rest_conf.h \
	src/rest/rest_credentials.c \
	src/rest/rest_edit.c \
	src/rest/rest_edit.h \
	src/rest/rest_hosts.c \
	src/rest/rest_internal.h \
	src/rest/rest_limits.c \
	src/rest/rest_limits.h \
	src/rest/rest_response.c \
	src/rest/rest_values.c \
	src/rest/rest_view.c \
	src/rest/rest_view.h
