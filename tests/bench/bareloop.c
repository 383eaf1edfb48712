/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bareloop WINDOW SMPS LID ...: measures the minimum time for SMPS SMPs. Keeps WINDOW of them in flight with only umad_send and
 * umad_recv; a third of them reads block 0 of the P_Key table of each port, a third writes it back, a third reads it again. No
 * retries and no checks: a lost MAD ends it. Prints the time in seconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/mad.h>
#include <infiniband/umad.h>

struct loop {
        int port, agent;
        unsigned window, total, n_lids;
        int *lids;
        uint8_t (*blocks)[IB_SMP_DATA_SIZE];
};

static void put_be(uint8_t *p, uint64_t v, unsigned n)
{
        while (n--) {
                p[n] = (uint8_t) v;
                v >>= 8;
        }
}

static int send_one(const struct loop *l, unsigned i)
{
        char umad[4096] = { 0 };
        uint8_t *mad = umad_get_mad(umad);
        unsigned which = i % l->n_lids, round = i / l->n_lids % 3;

        mad[0] = 1;
        mad[1] = IB_SMI_CLASS;
        mad[2] = 1;
        mad[3] = round == 1 ? IB_MAD_METHOD_SET : IB_MAD_METHOD_GET;
        put_be(mad + 12, i + 1, 4);
        put_be(mad + 16, IB_ATTR_PKEY_TBL, 2);
        memcpy(mad + 64, l->blocks[which], IB_SMP_DATA_SIZE);
        umad_set_addr(umad, l->lids[which], 0, 0, 0);
        return umad_send(l->port, l->agent, umad, IB_MAD_SIZE, 1000, 0);
}

static int receive_one(const struct loop *l)
{
        char umad[4096];
        const uint8_t *mad = umad_get_mad(umad);
        int length = IB_MAD_SIZE;
        unsigned i;

        if (umad_recv(l->port, umad, &length, 5000) < 0 || umad_status(umad))
                return -1;
        i = (unsigned) mad[12] << 24 | (unsigned) mad[13] << 16 | (unsigned) mad[14] << 8 | mad[15];
        if (i == 0 || i > l->total)
                return -1;
        memcpy(l->blocks[(i - 1) % l->n_lids], mad + 64, IB_SMP_DATA_SIZE);
        return 0;
}

static int run(const struct loop *l)
{
        unsigned sent = 0, received = 0;

        while (received < l->total) {
                while (sent < l->total && sent - received < l->window)
                        if (send_one(l, sent++) < 0)
                                return -1;
                if (receive_one(l) < 0)
                        return -1;
                received++;
        }
        return 0;
}

int main(int argc, char **argv)
{
        struct loop l = { 0 };
        struct timespec began, ended;

        if (argc < 4) {
                fprintf(stderr, "usage: bareloop WINDOW SMPS LID ...\n");
                return 2;
        }
        l.window = (unsigned) atoi(argv[1]);
        l.total = (unsigned) atoi(argv[2]);
        l.n_lids = (unsigned) argc - 3;
        l.lids = calloc(l.n_lids, sizeof(*l.lids));
        l.blocks = calloc(l.n_lids, sizeof(*l.blocks));
        if (!l.lids || !l.blocks || l.window == 0 || umad_init() < 0)
                return 1;
        for (unsigned i = 0; i < l.n_lids; i++)
                l.lids[i] = atoi(argv[3 + i]);
        l.port = umad_open_port(NULL, 0);
        l.agent = umad_register(l.port, IB_SMI_CLASS, 1, 0, NULL);
        if (l.port < 0 || l.agent < 0)
                return 1;
        clock_gettime(CLOCK_MONOTONIC, &began);
        if (run(&l) < 0) {
                fprintf(stderr, "bareloop: a MAD was lost\n");
                return 1;
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("%.6f\n", (double) (ended.tv_sec - began.tv_sec) + (double) (ended.tv_nsec - began.tv_nsec) / 1e9);
        umad_unregister(l.port, l.agent);
        umad_close_port(l.port);
        return 0;
}
