# tests/system/: whole programs on a simulated fabric (ibsim, OpenSM), each scenario a Python file; see harness.py.
# First those that take longest, from three minutes to one: with make -j none of them runs alone at the end.
SYSTEM_TESTS = \
	tests/system/test_memory.py \
	tests/system/test_memory_opensm.py \
	tests/system/test_etcd.py \
	tests/system/test_slurm.py \
	tests/system/test_writer_opensm.py \
	tests/system/test_unknown.py \
	tests/system/test_import.py \
	tests/system/test_leases.py \
	tests/system/test_held.py \
	tests/system/test_reboots.py \
	tests/system/test_confirm.py \
	tests/system/test_m_keys.py \
	tests/system/test_handovers.py \
	tests/system/test_bus.py \
	tests/system/test_documents.py \
	tests/system/test_apply.py \
	tests/system/test_capacity.py \
	tests/system/test_completion.py \
	tests/system/test_daemon.py \
	tests/system/test_discovery.py \
	tests/system/test_doctor.py \
	tests/system/test_door.py \
	tests/system/test_fabrics.py \
	tests/system/test_frozen.py \
	tests/system/test_harness.py \
	tests/system/test_history.py \
	tests/system/test_indexes.py \
	tests/system/test_loss.py \
	tests/system/test_metrics.py \
	tests/system/test_opensm_table.py \
	tests/system/test_output.py \
	tests/system/test_pair.py \
	tests/system/test_pins.py \
	tests/system/test_promises.py \
	tests/system/test_report.py \
	tests/system/test_rest.py \
	tests/system/test_rest_clients.py \
	tests/system/test_subnet_admin.py \
	tests/system/test_system_calls.py \
	tests/system/test_topologies.py \
	tests/system/test_violations.py

SYSTEM_MODULES = \
	tests/system/browser.py \
	tests/system/document.py \
	tests/system/door.py \
	tests/system/etcd.py \
	tests/system/etcd_proxy.py \
	tests/system/fake_pkeyd.py \
	tests/system/harness.py \
	tests/system/lease_load.py \
	tests/system/netfile.py \
	tests/system/private_bus.py \
	tests/system/rest_clients.py \
	tests/system/madtrace.py \
	tests/system/oracle.py

# The reader and the other writer share nothing with pkeyd, not even its flags. Without libibnetdisc the reader is not built, and
# the scenarios that need it are skipped.
if HAVE_IBNETDISC
check_PROGRAMS += tests/system/readtables
tests_system_readtables_SOURCES = tests/system/readtables.c
tests_system_readtables_CFLAGS = $(PKEYD_C_STD) $(WARN_CFLAGS) $(IBMAD_CFLAGS) $(IBUMAD_CFLAGS) $(IBNETDISC_CFLAGS)
tests_system_readtables_LDFLAGS =
tests_system_readtables_LDADD = $(IBNETDISC_LIBS) $(IBMAD_LIBS) $(IBUMAD_LIBS)

# Compares discovery with libibnetdisc.
check_PROGRAMS += tests/system/discoverboth
tests_system_discoverboth_SOURCES = tests/system/discoverboth.c tests/system/netdisc_reader.c tests/system/netdisc_reader.h
tests_system_discoverboth_CFLAGS = $(AM_CFLAGS) $(IBNETDISC_CFLAGS)
tests_system_discoverboth_LDADD = libpkeyd-shell.la $(IBNETDISC_LIBS)
endif

check_PROGRAMS += tests/system/setpkey
tests_system_setpkey_SOURCES = tests/system/setpkey.c
tests_system_setpkey_CFLAGS = $(PKEYD_C_STD) $(WARN_CFLAGS) $(IBMAD_CFLAGS) $(IBUMAD_CFLAGS)
tests_system_setpkey_LDFLAGS =
tests_system_setpkey_LDADD = $(IBMAD_LIBS) $(IBUMAD_LIBS)

# This one uses pkeyd's own code, without the rest of pkeyd.
check_PROGRAMS += tests/system/subscribe
tests_system_subscribe_SOURCES = tests/system/subscribe.c
tests_system_subscribe_LDADD = libpkeyd-shell.la

# pkeyd, from the same objects, with failing allocations.
check_PROGRAMS += tests/system/failingpkeyd
tests_system_failingpkeyd_SOURCES = $(pkeyd_SOURCES) tests/system/failing.c tests/unit/fail_alloc.c tests/unit/fail_alloc.h
tests_system_failingpkeyd_LDADD = $(pkeyd_LDADD)
tests_system_failingpkeyd_LDFLAGS = $(AM_LDFLAGS) $(FAIL_ALLOC)

# Preloaded into the programs under test. A separate rule, because libtool makes no shared objects here.
check_DATA += tests/system/madtrace-preload.so tests/system/timeouts-preload.so
tests/system/madtrace-preload.so: tests/system/madtrace.c tests/system/$(am__dirstamp)
	$(AM_V_CCLD)$(CC) $(PKEYD_C_STD) $(WARN_CFLAGS) $(IBUMAD_CFLAGS) $(CPPFLAGS) -D_GNU_SOURCE $(CFLAGS) -fPIC -shared \
		-o $@ $(srcdir)/tests/system/madtrace.c -ldl -pthread
tests/system/timeouts-preload.so: tests/system/timeouts.c tests/system/$(am__dirstamp)
	$(AM_V_CCLD)$(CC) $(PKEYD_C_STD) $(WARN_CFLAGS) $(IBUMAD_CFLAGS) $(CPPFLAGS) -D_GNU_SOURCE $(CFLAGS) -fPIC -shared \
		-o $@ $(srcdir)/tests/system/timeouts.c -ldl -pthread
CLEANFILES += tests/system/madtrace-preload.so tests/system/timeouts-preload.so

TESTS += $(SYSTEM_TESTS)
EXTRA_DIST += $(SYSTEM_TESTS) $(SYSTEM_MODULES) tests/system/madtrace.c tests/system/timeouts.c \
	tests/system/lsan.supp tests/system/asan.supp \
	tests/clients/ib_kubernetes.go tests/clients/networking-mlnx-baremetal.json tests/clients/nico.json \
	tests/clients/nv-config-manager.json
