/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * setpkey LID[/PORT] INDEX=P_KEY ...: writes entries of the P_Key table of a CA's port or a switch's port 0, or with PORT of
 * that external port of a switch; the rest of their blocks stays as it is. It stands for other writers in the tests.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/mad.h>
#include <infiniband/umad.h>

static bool set_entry(const struct ibmad_port *mad, ib_portid_t *to, unsigned port, unsigned index, unsigned value)
{
        unsigned modifier = port << 16 | index / 32;
        uint8_t data[IB_SMP_DATA_SIZE] = { 0 };
        unsigned at = index % 32 * 2;

        if (!smp_query_via(data, to, IB_ATTR_PKEY_TBL, modifier, 0, mad))
                return false;
        data[at] = (uint8_t) (value >> 8);
        data[at + 1] = (uint8_t) value;
        return smp_set_via(data, to, IB_ATTR_PKEY_TBL, modifier, 0, mad);
}

int main(int argc, char **argv)
{
        int classes[] = { IB_SMI_CLASS };
        struct ibmad_port *mad;
        ib_portid_t to = { 0 };
        unsigned lid, port = 0;

        if (argc < 3 || sscanf(argv[1], "%u/%u", &lid, &port) < 1) {
                fprintf(stderr, "usage: setpkey LID[/PORT] INDEX=P_KEY ...\n");
                return 2;
        }
        mad = mad_rpc_open_port(NULL, 0, classes, 1);
        if (!mad) {
                fprintf(stderr, "setpkey: cannot open the port\n");
                return 1;
        }
        ib_portid_set(&to, (int) lid, 0, 0);
        for (int i = 2; i < argc; i++) {
                unsigned index, value;

                if (sscanf(argv[i], "%u=%x", &index, &value) != 2 || !set_entry(mad, &to, port, index, value)) {
                        fprintf(stderr, "setpkey: %s: failed\n", argv[i]);
                        return 1;
                }
        }
        mad_rpc_close_port(mad);
        return 0;
}
