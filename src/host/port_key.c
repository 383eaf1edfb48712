/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/port_key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void port_key_make(const struct settings *s, struct port_key *ret)
{
        *ret = (struct port_key) { .number = s->port };
        (void) snprintf(ret->ca, sizeof(ret->ca), "%s", s->ca ? s->ca : "");
}

bool port_key_is_of(const struct port_key *k, const struct settings *s)
{
        return strcmp(k->ca, s->ca ? s->ca : "") == 0 && k->number == s->port;
}

const char *port_key_name(const struct settings *s, char ret[PORT_KEY_NAME])
{
        if (s->ca)
                (void) snprintf(ret, PORT_KEY_NAME, "%s%s%.0u", s->ca, s->port ? "/" : "", s->port);
        else if (s->port)
                (void) snprintf(ret, PORT_KEY_NAME, "port %u of an InfiniBand device", s->port);
        else
                (void) snprintf(ret, PORT_KEY_NAME, "an InfiniBand port");
        return ret;
}

const char *port_key_problem(int r)
{
        switch (r) {
        case -ENETDOWN:
                return "its link is down";
        case -ENODEV:
                return "not found on this host (ibstat lists the ports that it has)";
        case -EACCES:
        case -EPERM:
                return "no permission to use /dev/infiniband/umad*; the udev rule 70-pkeyd.rules gives them to the group pkeyd: "
                       "'systemctl restart systemd-udevd', then 'udevadm trigger'";
        case -ENOTUNIQ:
                return "several InfiniBand ports of this host are possible, and each fabric needs its own; set ca and port in pkeyd.yaml";
        case -EBUSY:
                return "another pkeyd of this host serves this port; each fabric needs its own: see ca and port in pkeyd.yaml";
        case -EOPNOTSUPP:
                return "the kernel module ib_umad is not loaded";
        }
        return strerror(-r);
}
