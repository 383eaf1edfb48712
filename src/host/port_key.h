/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "settings/settings.h"

#define MAX_CA_NAME   64
#define PORT_KEY_NAME (MAX_CA_NAME + 16)

/* The local port that the settings name; ca "" and number 0: any. */
struct port_key {
        char ca[MAX_CA_NAME];
        unsigned number;
};

void port_key_make(const struct settings *s, struct port_key *ret);
bool port_key_is_of(const struct port_key *k, const struct settings *s);
/* "mlx5_0/1", "port 1 of an InfiniBand device", or "an InfiniBand port". Returns ret. */
const char *port_key_name(const struct settings *s, char ret[PORT_KEY_NAME]);
/* What a negative errno of opening the port means, and what an admin can do. */
const char *port_key_problem(int r);
