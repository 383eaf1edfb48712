/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/etcd_place.h"

#include <errno.h>
#include <string.h>

#include "etcd/etcd_http.h"
#include "settings/settings.h"
#include "shell/file.h"
#include "util/text.h"

static int read_password(struct arena *a, const struct settings *settings, struct findings *findings, const char **ret)
{
        _cleanup_secret_ struct secret secret = {};
        int r = etcd_read_password(settings->etcd_password_file, findings, &secret);

        if (r < 0 || !secret.bytes)
                return r;
        *ret = arena_strdup(a, secret.bytes);
        return *ret ? 0 : -ENOMEM;
}

static int make_config(struct arena *a, const struct settings *settings, const char *fabric, struct findings *findings,
                       struct etcd_config **ret)
{
        struct etcd_config *config = arena_new_object(a, struct etcd_config);

        if (!config)
                return -ENOMEM;
        *config = (struct etcd_config) {
                .endpoints = settings->etcd_endpoints, .n_endpoints = settings->n_etcd_endpoints, .ca_file = settings->etcd_ca_file,
                .cert_file = settings->etcd_cert_file, .key_file = settings->etcd_key_file, .user = settings->etcd_user,
                .password_file = settings->etcd_password_file, .fabric = fabric,
                .lease = (unsigned) (settings->etcd_lease / USEC_PER_SEC),
        };
        *ret = config;
        return config->user ? read_password(a, settings, findings, &config->password) : 0;
}

static bool is_same(const char *x, const char *y)
{
        return strcmp(x ?: "", y ?: "") == 0;
}

bool etcd_place_is(const struct etcd_config *c, const struct settings *s)
{
        bool is_etcd = s->store == STORE_ETCD;

        if (!c || !is_etcd)
                return !c && !is_etcd;
        return text_lists_are_equal(c->endpoints, c->n_endpoints, s->etcd_endpoints, s->n_etcd_endpoints) &&
               is_same(c->ca_file, s->etcd_ca_file) && is_same(c->cert_file, s->etcd_cert_file) &&
               is_same(c->key_file, s->etcd_key_file) && is_same(c->user, s->etcd_user) &&
               is_same(c->password_file, s->etcd_password_file) && c->lease == s->etcd_lease / USEC_PER_SEC;
}

int etcd_place_find(struct arena *a, const char *settings_file, const char *fabric, struct findings *findings,
                    struct etcd_config **ret)
{
        _cleanup_findings_ struct findings ignored = { .arena = a };
        struct settings *settings;
        const char *bytes;
        size_t n;
        int r;

        *ret = NULL;
        r = file_read_found(a, settings_file, SETTINGS_MAX_FILE_SIZE, &ignored, &bytes, &n) ?:
            settings_parse(a, settings_file, bytes, n, &ignored, &settings);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        return settings->store == STORE_ETCD ? make_config(a, settings, fabric, findings, ret) : 0;
}
