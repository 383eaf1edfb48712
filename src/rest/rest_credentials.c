/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The check of a client's credentials. */
#include <crypt.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "rest/rest_conf.h"
#include "util/base64.h"

#define MAX_CREDENTIAL (REST_CREDENTIAL_SIZE - 1) /* bytes, decoded: as crypt(3) accepts */

/* Decodes base64 of at most MAX_CREDENTIAL bytes, and adds a NUL. Returns false if it is not well-formed, or has a NUL in it. */
static bool decode_base64(const char *text, char ret[MAX_CREDENTIAL + 1])
{
        size_t n;

        if (BASE64_BYTES(strlen(text)) > MAX_CREDENTIAL || !base64_decode(text, ret, &n))
                return false;
        ret[n] = '\0';
        return strlen(ret) == n;
}

/* Compares in a time that depends on the length of `expected` only. */
static bool equal(const char *text, const char *expected)
{
        size_t n = strlen(text), m = strlen(expected);
        unsigned difference = n != m;

        for (size_t i = 0; i < m; i++)
                difference |= (unsigned char) (text[n == m ? i : 0] ^ expected[i]);
        return difference == 0;
}

/* Returns 0, -EACCES, -ENOMEM. */
static int check(const char *secret, const char *hash)
{
        struct crypt_data *data = calloc(1, sizeof(*data));
        const char *result;
        int r;

        if (!data)
                return -ENOMEM;
        result = crypt_r(secret, hash, data);
        r = result && equal(result, hash) ? 0 : -EACCES;
        explicit_bzero(data, sizeof(*data));
        free(data);
        return r;
}

static const char *hash_of(const struct rest_client *c, enum rest_prefix prefix)
{
        return prefix == REST_PREFIX_TOKEN ? c->token : c->password;
}

/* Checks a secret of the client whose name has n bytes. For an unknown name, it is checked against another client's hash, for the
 * time that it takes. */
static int check_named(const struct rest_conf *conf, enum rest_prefix prefix, const char *name, size_t n, const char *secret,
                       const struct rest_client **ret)
{
        const struct rest_client *client = NULL;
        const char *decoy = NULL;
        int r;

        for (size_t i = 0; i < conf->n_clients; i++) {
                const struct rest_client *c = &conf->clients[i];

                if (!hash_of(c, prefix))
                        continue;
                decoy = decoy ?: hash_of(c, prefix);
                if (strncmp(c->name, name, n) == 0 && c->name[n] == '\0')
                        client = c;
        }
        r = decoy ? check(secret, client ? hash_of(client, prefix) : decoy) : -EACCES;
        if (r < 0 || !client)
                return r < 0 ? r : -EACCES;
        *ret = client;
        return 0;
}

static int check_password(const struct rest_conf *conf, const char *encoded, const struct rest_client **ret)
{
        char decoded[MAX_CREDENTIAL + 1];
        const char *colon = decode_base64(encoded, decoded) ? strchr(decoded, ':') : NULL;
        int r = colon ? check_named(conf, REST_PREFIX_PASSWORD, decoded, (size_t) (colon - decoded), colon + 1, ret) : -EACCES;

        explicit_bzero(decoded, sizeof(decoded));
        return r;
}

static int check_token(const struct rest_conf *conf, const char *token, const struct rest_client **ret)
{
        size_t n = strcspn(token, ".");

        return strlen(token) <= MAX_CREDENTIAL && token[n] == '.'
                       ? check_named(conf, REST_PREFIX_TOKEN, token, n, token, ret)
                       : -EACCES;
}

static int check_certificate(const struct rest_conf *conf, const char *subject, const struct rest_client **ret)
{
        for (size_t i = 0; subject && i < conf->n_clients; i++) {
                const struct rest_client *c = &conf->clients[i];

                if (c->certificate && strcmp(c->certificate, subject) == 0) {
                        *ret = c;
                        return 0;
                }
        }
        return -EACCES;
}

/* The credential of a header, after the scheme; NULL: it has another scheme, or none. */
static const char *skip_scheme(const char *authorization)
{
        static const char scheme[] = "Basic ";
        size_t n = strlen(scheme);

        if (!authorization || strncasecmp(authorization, scheme, n) != 0)
                return NULL;
        return authorization + n + strspn(authorization + n, " ");
}

int rest_authenticate(const struct rest_conf *conf, enum rest_prefix prefix, const char *authorization, const char *certificate,
                      const struct rest_client **ret)
{
        const char *basic = skip_scheme(authorization);

        switch (prefix) {
        case REST_PREFIX_PASSWORD:
                if (basic && *basic)
                        return check_password(conf, basic, ret);
                return authorization && *authorization ? -EACCES : check_certificate(conf, certificate, ret);
        case REST_PREFIX_TOKEN:
                return basic ? check_token(conf, basic, ret) : -EACCES;
        case REST_PREFIX_NONE:
        case REST_PREFIX_KERBEROS:
                break;
        }
        return -EACCES;
}

bool rest_credential_name(enum rest_prefix prefix, const char *authorization, char ret[static REST_CREDENTIAL_SIZE], size_t *ret_n)
{
        const char *basic = skip_scheme(authorization), *end = NULL;
        bool is_token = prefix == REST_PREFIX_TOKEN;
        size_t n;

        memset(ret, '\0', REST_CREDENTIAL_SIZE);
        if (basic && is_token && strlen(basic) < REST_CREDENTIAL_SIZE)
                memcpy(ret, basic, strlen(basic));
        if (is_token || (prefix == REST_PREFIX_PASSWORD && basic && decode_base64(basic, ret)))
                end = strchr(ret, is_token ? '.' : ':');
        n = end ? (size_t) (end - ret) : 0;
        explicit_bzero(ret + n, REST_CREDENTIAL_SIZE - n); /* the secret */
        *ret_n = n;
        return end;
}
