# M_Keys and the files that they stand in
check_PROGRAMS += check_m_keys check_secret
TESTS += check_m_keys check_secret
check_m_keys_SOURCES = tests/unit/check_m_keys.c
check_m_keys_LDADD = $(TEST_LIBS)
check_m_keys_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=qsort,--wrap=free
check_secret_SOURCES = tests/unit/check_secret.c
check_secret_LDADD = libpkeyd-shell.la $(TEST_LIBS)
