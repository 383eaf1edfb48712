/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verbs_ports: prints the ports of this host by shell/verbs_port.h, one line each: "DEVICE PORT COUNTER", where COUNTER is
 * bad_pkey_cntr, or - if the device has none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shell/verbs_port.h"

int main(void)
{
        _cleanup_verbs_host_ struct verbs_host *h = NULL;
        struct verbs_port port;
        int r;

        r = verbs_host_new(NULL, NULL, NULL, &h);
        if (r == 0)
                r = verbs_host_scan(h);
        for (size_t i = 0; r == 0 && i < verbs_host_n_ports(h); i++) {
                r = verbs_host_query(h, i, &port);
                if (r < 0)
                        break;
                if (port.has_bad_p_key_counter)
                        printf("%s %u %" PRIu32 "\n", port.device, port.number, port.bad_p_key_counter);
                else
                        printf("%s %u -\n", port.device, port.number);
        }
        if (r < 0)
                fprintf(stderr, "verbs_ports: %s\n", strerror(-r));
        return r < 0;
}
