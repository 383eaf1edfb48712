# tests/kernel/: the service on a real kernel, in a virtual machine. Not part of make check: it wants root, QEMU and a kernel
# with its headers, and fails without them.
KERNEL_LAB = \
	tests/kernel/bridge.c \
	tests/kernel/driver/Kbuild \
	tests/kernel/driver/labhca.c \
	tests/kernel/driver/labhca.h \
	tests/kernel/guest.py \
	tests/kernel/lab \
	tests/kernel/lab.py \
	tests/kernel/p_keys.c

EXTRA_DIST += $(KERNEL_LAB)

check-kernel:
	$(srcdir)/tests/kernel/lab --build '$(abs_top_builddir)/tests/kernel/lab.build'

clean-local:
	rm -rf tests/kernel/lab.build

.PHONY: check-kernel
