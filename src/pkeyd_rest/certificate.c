/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/certificate.h"

#include <gnutls/x509.h>
#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"

static bool is_verified(gnutls_session_t session)
{
        gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *) GNUTLS_KP_TLS_WWW_CLIENT };
        unsigned status;

        return gnutls_certificate_verify_peers(session, &purpose, 1, &status) == 0 && status == 0;
}

static char *subject_of(const gnutls_datum_t *der)
{
        gnutls_datum_t name = {};
        gnutls_x509_crt_t crt;
        char *subject = NULL;

        if (gnutls_x509_crt_init(&crt) < 0)
                return NULL;
        if (gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) == 0 && gnutls_x509_crt_get_dn3(crt, &name, 0) == 0 &&
            strnlen((const char *) name.data, name.size) == name.size)
                subject = strndup((const char *) name.data, name.size);
        gnutls_free(name.data);
        gnutls_x509_crt_deinit(crt);
        return subject;
}

char *certificate_subject(gnutls_session_t session)
{
        const gnutls_datum_t *chain;
        unsigned n = 0;

        if (gnutls_certificate_type_get2(session, GNUTLS_CTYPE_PEERS) != GNUTLS_CRT_X509)
                return NULL;
        chain = gnutls_certificate_get_peers(session, &n);
        return chain && n > 0 && is_verified(session) ? subject_of(&chain[0]) : NULL;
}
