# tests/kernel/: the service on a real kernel, in a virtual machine. Not part of make check: it needs root, QEMU and a kernel
# with its headers, and is skipped with the reason if one is missing.
KERNEL_LAB = \
	tests/kernel/bridge.c \
	tests/kernel/driver/Kbuild \
	tests/kernel/driver/labhca.c \
	tests/kernel/driver/labhca.h \
	tests/kernel/guest.py \
	tests/kernel/lab \
	tests/kernel/lab.py \
	tests/kernel/listener.c \
	tests/kernel/p_keys.c

# This one uses pkeyd's own code, so it is built like pkeyd.
check_PROGRAMS += tests/kernel/verbs_ports
tests_kernel_verbs_ports_SOURCES = tests/kernel/verbs_ports.c
tests_kernel_verbs_ports_LDADD = libpkeyd-shell.la libpkeyd-core.la

EXTRA_DIST += $(KERNEL_LAB)

check-kernel:
	$(srcdir)/tests/kernel/lab --build '$(abs_top_builddir)/tests/kernel/lab.build' || test $$? -eq 77

clean-local:
	rm -rf tests/kernel/lab.build

.PHONY: check-kernel
