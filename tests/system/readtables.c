/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * readtables: prints the P_Key table of every endport as one JSON object. An independent reader for the tests: it shares no
 * code with pkeyd and sends one query at a time.
 *
 *     {"ports": [{"node": "0x...", "port_guid": "0x...", "lid": 3, "port": 1, "type": 1, "description": "node0001 mlx5_0",
 *                 "switch": "0x...", "switch_port": 1, "cap": 64, "table": ["0xffff", ...]}]}
 *
 * "switch" and "switch_port" are the switch port that the port is connected to (null without a cable, or on a switch); "table"
 * has all entries up to the capacity, including unused ones, and is null if the port did not answer.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ibnetdisc.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>

struct reader {
        struct ibmad_port *mad;
        ib_portid_t self;
        bool comma;
};

static void print_string(const char *s, size_t max)
{
        putchar('"');
        for (size_t i = 0; i < max && s[i]; i++) {
                unsigned char c = (unsigned char) s[i];

                if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
                        printf("\\u%04x", c);
                else
                        putchar(c);
        }
        putchar('"');
}

/* By LID if the node has one, else by the directed route that the discovery found. */
static ib_portid_t route_to(const ibnd_port_t *port, int lid)
{
        ib_portid_t to = { 0 };

        if (!lid)
                return port->node->path_portid;
        ib_portid_set(&to, lid, 0, 0);
        return to;
}

static bool print_table(const struct reader *r, ib_portid_t *to, unsigned cap)
{
        uint16_t table[65536];

        for (unsigned block = 0; block * 32 < cap; block++) {
                uint8_t data[IB_SMP_DATA_SIZE] = { 0 };

                if (!smp_query_via(data, to, IB_ATTR_PKEY_TBL, block, 0, r->mad))
                        return false;
                for (unsigned i = 0; i < 32 && block * 32 + i < cap; i++)
                        table[block * 32 + i] = (uint16_t) (data[2 * i] << 8 | data[2 * i + 1]);
        }
        putchar('[');
        for (unsigned i = 0; i < cap; i++)
                printf("%s\"0x%04x\"", i ? "," : "", table[i]);
        putchar(']');
        return true;
}

static void print_port(struct reader *r, const ibnd_port_t *port)
{
        const ibnd_node_t *node = port->node;
        bool is_switch = node->type == IB_NODE_SWITCH;
        int lid = is_switch ? node->smalid : port->base_lid;
        ib_portid_t to = route_to(port, lid);
        uint8_t node_info[IB_SMP_DATA_SIZE] = { 0 };
        unsigned cap = 0;

        if (smp_query_via(node_info, &to, IB_ATTR_NODE_INFO, 0, 0, r->mad))
                cap = mad_get_field(node_info, 0, IB_NODE_PARTITION_CAP_F);
        printf("%s\n{\"node\":\"0x%016" PRIx64 "\",\"port_guid\":\"0x%016" PRIx64 "\",\"lid\":%d,\"port\":%d,\"type\":%d,",
               r->comma ? "," : "", node->guid, is_switch ? node->guid : port->guid, lid, is_switch ? 0 : port->portnum,
               node->type);
        r->comma = true;
        printf("\"description\":");
        print_string(node->nodedesc, IB_SMP_DATA_SIZE);
        if (!is_switch && port->remoteport && port->remoteport->node->type == IB_NODE_SWITCH)
                printf(",\"switch\":\"0x%016" PRIx64 "\",\"switch_port\":%d", port->remoteport->node->guid,
                       port->remoteport->portnum);
        else
                printf(",\"switch\":null,\"switch_port\":null");
        printf(",\"cap\":%u,\"table\":", cap);
        if (!cap || !print_table(r, &to, cap))
                printf("null");
        putchar('}');
}

static void print_node(ibnd_node_t *node, void *userdata)
{
        struct reader *r = userdata;

        if (node->type == IB_NODE_SWITCH) {
                if (node->ports[0])
                        print_port(r, node->ports[0]);
                return;
        }
        for (int i = 1; i <= node->numports; i++)
                /* ports without a cable were not discovered, except the local one */
                if (node->ports[i] && (node->ports[i]->remoteport || node->ports[i]->base_lid))
                        print_port(r, node->ports[i]);
}

int main(void)
{
        int classes[] = { IB_SMI_CLASS, IB_SMI_DIRECT_CLASS };
        struct ibnd_config config = { .max_smps = 32 };
        struct reader r = { 0 };
        ibnd_fabric_t *fabric;

        fabric = ibnd_discover_fabric(NULL, 0, NULL, &config);
        if (!fabric) {
                fprintf(stderr, "readtables: discovery failed\n");
                return 1;
        }
        r.mad = mad_rpc_open_port(NULL, 0, classes, 2);
        if (!r.mad) {
                fprintf(stderr, "readtables: cannot open the port\n");
                return 1;
        }
        mad_rpc_set_timeout(r.mad, 300);
        mad_rpc_set_retries(r.mad, 3);
        printf("{\"ports\":[");
        ibnd_iter_nodes(fabric, print_node, &r);
        printf("\n]}\n");
        mad_rpc_close_port(r.mad);
        ibnd_destroy_fabric(fabric);
        return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
