# SPDX-License-Identifier: GPL-2.0-or-later
# Makes the settings of the packages from conf/pkeyd.yaml: they begin in audit mode.
/^#mode: enforce$/c\
# The package sets audit, so that nothing writes to the fabric before you have read what pkeyd reports. Once `pkeyctl plan` shows\
# what you expect, and a writer is chosen (pkeyd-opensm(7)), set enforce and run `systemctl reload pkeyd`.\
mode: audit
