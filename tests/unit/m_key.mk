# M_Keys and the files that they stand in
check_PROGRAMS += check_secret
TESTS += check_secret
check_secret_SOURCES = tests/unit/check_secret.c
check_secret_LDADD = libpkeyd-shell.la $(TEST_LIBS)
