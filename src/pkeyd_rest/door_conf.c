/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/door_conf.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <string.h>

#include "shell/file.h"

#define MAX_CONF_SIZE (4u << 20)
#define MAX_PEM_SIZE  (1u << 20)

static gnutls_datum_t datum_of(const char *text)
{
        return (gnutls_datum_t) { (unsigned char *) text, text ? (unsigned) strlen(text) : 0 };
}

static int refuse_file(struct findings *findings, const char *path, const char *what, int error)
{
        const struct location where = { .file = arena_strdup(findings->arena, path) };

        if (!where.file)
                return -ENOMEM;
        (void) findings_add(findings, FINDING_ERROR, FINDING_VALUE_INVALID, &where, "GnuTLS cannot use it: %s (accepted: %s)",
                            gnutls_strerror(error), what);
        return findings->out_of_memory ? -ENOMEM : -EBADMSG;
}

/* libmicrohttpd does not report why it cannot start with these files. */
static int check_tls(const struct door_conf *c, struct findings *findings)
{
        gnutls_datum_t certificate = datum_of(c->tls.certificate), key = datum_of(c->tls.key), ca = datum_of(c->tls.client_ca);
        gnutls_certificate_credentials_t credentials;
        int r = 0, e;

        if (gnutls_certificate_allocate_credentials(&credentials) < 0)
                return -ENOMEM;
        e = gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM);
        if (e < 0)
                r = refuse_file(findings, c->rest->tls_certificate, "a certificate in PEM, to which tls.key belongs", e);
        if (r == 0 && ca.data) {
                e = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
                if (e <= 0)
                        r = refuse_file(findings, c->rest->tls_client_ca, "certificates in PEM",
                                        e < 0 ? e : GNUTLS_E_NO_CERTIFICATE_FOUND);
        }
        gnutls_certificate_free_credentials(credentials);
        return r;
}

static int load_tls(struct door_conf *c, struct findings *findings)
{
        const struct rest_conf *rest = c->rest;
        int key, certificate, ca = 0;
        size_t n;

        if (!rest->tls_certificate)
                return 0;
        key = secret_read_of_group(rest->tls_key, MAX_PEM_SIZE, findings, &c->key);
        certificate = file_read_found(c->arena, rest->tls_certificate, MAX_PEM_SIZE, findings, &c->tls.certificate, &n);
        if (rest->tls_client_ca)
                ca = file_read_found(c->arena, rest->tls_client_ca, MAX_PEM_SIZE, findings, &c->tls.client_ca, &n);
        c->tls.key = c->key.bytes;
        return key ?: certificate ?: ca ?: check_tls(c, findings);
}

int door_conf_load(const char *path, struct findings *findings, struct door_conf **ret)
{
        _cleanup_(door_conf_free_p) struct door_conf *c = calloc(1, sizeof(*c));
        _cleanup_secret_ struct secret file = {};
        int r;

        if (!c)
                return -ENOMEM;
        c->arena = arena_new();
        r = secret_read_of_group(path, MAX_CONF_SIZE, findings, &file);
        r = r ?: rest_conf_parse(c->arena, path, file.bytes, file.n, findings, &c->rest) ?: load_tls(c, findings);
        if (r < 0)
                return r;
        *ret = STEAL(c);
        return 0;
}

struct door_conf *door_conf_free(struct door_conf *c)
{
        if (!c)
                return NULL;
        secret_done(&c->key);
        (void) arena_free(c->arena);
        free(c);
        return NULL;
}
