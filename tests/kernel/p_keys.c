/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * p_keys DEVICE: prints the used entries of the P_Key table of port 1 through libibverbs, "INDEX=0xP_KEY ..." in one line. An
 * independent reader for the tests.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

static struct ibv_context *open_device(const char *name)
{
        struct ibv_context *context = NULL;
        struct ibv_device **list;
        int n = 0;

        list = ibv_get_device_list(&n);
        for (int i = 0; list && i < n && !context; i++)
                if (strcmp(ibv_get_device_name(list[i]), name) == 0)
                        context = ibv_open_device(list[i]);
        if (list)
                ibv_free_device_list(list);
        return context;
}

int main(int argc, char **argv)
{
        struct ibv_port_attr attributes;
        struct ibv_context *context;
        __be16 key;

        if (argc != 2) {
                fprintf(stderr, "usage: p_keys DEVICE\n");
                return 2;
        }
        context = open_device(argv[1]);
        if (!context || ibv_query_port(context, 1, &attributes) != 0) {
                fprintf(stderr, "p_keys: %s cannot be opened\n", argv[1]);
                return 1;
        }
        for (int i = 0; i < attributes.pkey_tbl_len; i++) {
                if (ibv_query_pkey(context, 1, i, &key) != 0) {
                        fprintf(stderr, "p_keys: index %d cannot be read\n", i);
                        return 1;
                }
                if (ntohs(key) & 0x7fff)
                        printf("%d=0x%04x ", i, ntohs(key));
        }
        putchar('\n');
        (void) ibv_close_device(context);
        return 0;
}
