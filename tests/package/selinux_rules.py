#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks rules and labels of pkeyd in a linked SELinux policy, for tests/package/selinux: selinux_rules.py POLICY FILE_CONTEXTS"""

import subprocess
import sys

import setools

# What a domain may always do: source, target, class, permission.
MAY = """
init_t pkeyd_t process transition
init_t pkeyd_t process2 nnp_transition
init_t pkeyd_rest_t process transition
init_t pkeyd_rest_t process2 nnp_transition
init_t pkeyd_rest_t tcp_socket listen
pkeyd_t infiniband_device_t chr_file write
pkeyd_t unlabeled_t infiniband_endport manage_subnet
pkeyd_t unlabeled_t infiniband_pkey access
pkeyd_t pkeyd_t netlink_rdma_socket create
pkeyd_t sysctl_kernel_t file read
pkeyd_t pkeyd_etc_t file read
pkeyd_t pkeyd_var_lib_t file map
pkeyd_t pkeyd_var_lib_t file unlink
pkeyd_t pkeyd_opensm_conf_t file read
pkeyd_t init_t unix_dgram_socket sendto
pkeyd_t system_dbusd_t dbus acquire_svc
pkeyd_rest_t pkeyd_t dbus send_msg
pkeyd_t pkeyd_rest_t dbus send_msg
pkeyd_rest_t http_port_t tcp_socket name_bind
pkeyd_rest_t pkeyd_etc_t file read
pkeyd_rest_t cert_t file read
opensm_t pkeyd_opensm_conf_t file read
"""

# What no boolean lets it do.
NEVER = """
pkeyd_t pkeyd_etc_t file write
pkeyd_t etc_t file write
pkeyd_t etc_t dir add_name
pkeyd_t shell_exec_t file execute
pkeyd_t bin_t file execute
pkeyd_t sshd_t process signal
pkeyd_rest_t shell_exec_t file execute
pkeyd_rest_t bin_t file execute
pkeyd_rest_t infiniband_device_t chr_file write
pkeyd_rest_t unlabeled_t infiniband_endport manage_subnet
pkeyd_rest_t pkeyd_var_lib_t file read
pkeyd_rest_t pkeyd_etc_t file write
pkeyd_rest_t pkeyd_opensm_conf_t file write
"""

# What it may do only with a boolean.
WITH = """
pkeyd_manage_opensm pkeyd_t pkeyd_opensm_conf_t file write
pkeyd_manage_opensm pkeyd_t pkeyd_opensm_conf_t dir add_name
pkeyd_manage_opensm pkeyd_t opensm_t process signal
pkeyd_manage_opensm pkeyd_t pkeyd_t capability kill
pkeyd_write_metrics pkeyd_t pkeyd_metrics_t file rename
pkeyd_write_metrics pkeyd_t var_lib_t dir add_name
pkeyd_use_etcd pkeyd_t unreserved_port_t tcp_socket name_connect
pkeyd_use_etcd pkeyd_t cert_t file read
"""

# Of the system, for who looks up users.
NSSWITCH = {"allow_ypbind is True", "authlogin_nsswitch_use_ldap is True"}

LABELS = """
/usr/sbin/pkeyd pkeyd_exec_t
/usr/bin/pkeyd pkeyd_exec_t
/usr/sbin/pkeyd-rest pkeyd_rest_exec_t
/usr/bin/pkeyctl bin_t
/usr/lib/systemd/system/pkeyd@.service pkeyd_unit_file_t
/etc/pkeyd/partitions.yaml pkeyd_etc_t
/etc/pkeyd/blue/pkeyd.yaml pkeyd_etc_t
/var/lib/pkeyd/state.db-wal pkeyd_var_lib_t
/etc/rdma/pkeyd/partitions.conf.before-pkeyd pkeyd_opensm_conf_t
/etc/opensm/pkeyd/partitions.conf pkeyd_opensm_conf_t
/etc/rdma/opensm.conf etc_t
/var/lib/node_exporter/pkeyd.prom pkeyd_metrics_t
/var/lib/node_exporter/other.prom var_lib_t
"""


class Rules:
    def __init__(self, path):
        self.policy = setools.SELinuxPolicy(path)

    def conditions(self, source, target, tclass, permission):
        """Returns what each rule that allows it depends on: an expression of booleans, "" for no condition."""
        query = setools.TERuleQuery(self.policy, ruletype=["allow"], source=source, source_indirect=True, target=target,
                                    target_indirect=True, tclass=[tclass], perms=[permission])
        found = set()
        for rule in query.results():
            try:
                found.add("%s is %s" % (rule.conditional, rule.conditional_block))
            except setools.exception.RuleNotConditional:
                found.add("")
        return found


def lines(text):
    return [line.split() for line in text.strip().splitlines()]


def main():
    rules = Rules(sys.argv[1])
    failures = []
    for rule in lines(MAY):
        if "" not in rules.conditions(*rule):
            failures.append("%s may not %s, but must" % (rule[0], " ".join(rule[:0:-1])))
    for rule in lines(NEVER):
        found = rules.conditions(*rule)
        if found:
            failures.append("%s may %s, but must not: %s" % (rule[0], " ".join(rule[:0:-1]), sorted(found)))
    for boolean, *rule in lines(WITH):
        found = rules.conditions(*rule)
        if found - NSSWITCH != {"%s is True" % boolean}:
            failures.append("%s must be allowed to %s with %s only, but the rules depend on %s" %
                            (rule[0], " ".join(rule[:0:-1]), boolean, sorted(found)))
    for path, expected in lines(LABELS):
        label = subprocess.run(["matchpathcon", "-n", "-f", sys.argv[2], "-m", "file", path], stdout=subprocess.PIPE, check=True,
                               universal_newlines=True).stdout.strip()
        if label.split(":")[2] != expected:
            failures.append("%s gets the label %s instead of %s" % (path, label, expected))
    for failure in failures:
        print("FAIL: %s" % failure, file=sys.stderr)
    print("%d rules and %d labels, %d failed" % (len(lines(MAY + NEVER + WITH)), len(lines(LABELS)), len(failures)))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
