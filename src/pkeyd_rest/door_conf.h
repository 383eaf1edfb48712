/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* rest.yaml and the files that it names, as read at one time. */

#include "pkeyd_rest/http.h"
#include "shell/secret.h"

struct door_conf {
        struct arena *arena;     /* owned */
        struct rest_conf *rest;  /* in the arena */
        struct secret key;       /* owned */
        struct http_tls tls;     /* the key is borrowed from `key`, the others are in the arena */
};

/* Returns 0, -EBADMSG (findings say why), -ENOMEM; *ret owned. */
int door_conf_load(const char *path, struct findings *findings, struct door_conf **ret);
struct door_conf *door_conf_free(struct door_conf *c);
DEFINE_CLEANUP(struct door_conf *, door_conf_free)
