/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests, from their first line to the answer. */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "pkeyd_rest/http_internal.h"
#include "shell/shell.h"
#include "util/scan.h"
#include "util/vector.h"

#define MAX_DELAYED 16 /* requests whose refusal is delayed */

struct http_request *http_request_ref(struct http_request *q)
{
        q->n_refs++;
        return q;
}

struct http_request *http_request_unref(struct http_request *q)
{
        struct http_server *s = q->server;

        if (--q->n_refs > 0)
                return NULL;
        free(q->body);
        (void) arena_free(q->arena);
        free(q);
        s->n_requests--;
        http_check_end(s);
        return NULL;
}

bool http_request_is_awaited(const struct http_request *q)
{
        return q->connection && q->response.status == 0;
}

/* --- answers ---------------------------------------------------------------------------------------------------------- */

void http_resume(struct http_request *q)
{
        if (q->is_delayed) {
                q->is_delayed = false;
                q->server->n_delayed--;
        }
        if (!q->is_suspended)
                return;
        q->is_suspended = false;
        MHD_resume_connection(q->connection->mhd);
        http_run_soon(q->server);
}

void http_answer(struct http_request *q, const struct rest_response *response)
{
        if (!http_request_is_awaited(q))
                return;
        q->response = *response;
        http_resume(q);
}

void http_refuse(struct http_request *q, unsigned status, const char *text)
{
        struct rest_response response;

        if (!http_request_is_awaited(q))
                return;
        if (rest_refuse(q->arena, status, text, &response) == 0) {
                http_answer(q, &response);
        } else {
                http_cut(q->connection);
                http_resume(q);
        }
}

void http_refuse_login(struct http_request *q, usec_t delay)
{
        struct http_server *s = q->server;
        struct http_connection *c = q->connection;

        if (!http_request_is_awaited(q))
                return;
        if (s->n_delayed == MAX_DELAYED) {
                http_cut(c);
                return;
        }
        http_refuse(q, 401, "the name, the password or the token is wrong");
        q->answer_at = clock_now() + delay;
        q->is_delayed = true;
        s->n_delayed++;
        c->deadline = MAX(c->deadline, q->answer_at + HTTP_GRACE);
        http_wake_at(s, q->answer_at);
}

/* Leaves out a header if out of memory. */
static struct MHD_Response *make_response(const struct http_request *q)
{
        const struct rest_response *r = &q->response;
        struct MHD_Response *m = MHD_create_response_from_buffer(r->n_body, (void *) r->body, MHD_RESPMEM_MUST_COPY);

        if (!m)
                return NULL;
        (void) MHD_add_response_header(m, "Content-Type", r->content_type);
        (void) MHD_add_response_header(m, "Cache-Control", "no-store");
        if (r->allow)
                (void) MHD_add_response_header(m, "Allow", r->allow);
        if (r->status == 401)
                (void) MHD_add_response_header(m, "WWW-Authenticate", "Basic realm=\"pkeyd\", charset=\"UTF-8\"");
        if (r->status == 429 || r->status == 503)
                (void) MHD_add_response_header(m, "Retry-After", "1");
        if (q->server->is_ending)
                (void) MHD_add_response_header(m, "Connection", "close");
        return m;
}

static enum MHD_Result queue_response(struct http_request *q)
{
        struct MHD_Response *m = make_response(q);
        enum MHD_Result result = m ? MHD_queue_response(q->connection->mhd, q->response.status, m) : MHD_NO;

        if (m)
                MHD_destroy_response(m);
        return result;
}

/* --- bodies ----------------------------------------------------------------------------------------------------------- */

static bool is_too_long(const struct http_request *q, uint64_t n)
{
        return n > q->server->conf->max_body;
}

static void refuse_body(struct http_request *q)
{
        char text[64];

        (void) snprintf(text, sizeof(text), "the body is longer than %" PRIu64 " bytes", q->server->conf->max_body);
        http_refuse(q, 413, text);
}

static int append_body(struct http_request *q, const char *bytes, size_t n)
{
        if (VECTOR_EXTEND(NULL, q->body, q->n_body, q->n_allocated, n) < 0)
                return -ENOMEM;
        memcpy(q->body + q->n_body, bytes, n);
        q->n_body += n;
        return 0;
}

/* The library sends an answer before the body or after it, not in the midst of it. So the door drops what follows a refusal, up to
 * a limit. */
static enum MHD_Result take_body(struct http_request *q, const char *bytes, size_t n)
{
        if (q->response.status == 0 && is_too_long(q, q->n_body + n))
                refuse_body(q);
        if (q->response.status == 0)
                return append_body(q, bytes, n) == 0 ? MHD_YES : MHD_NO;
        q->n_dropped += n;
        return q->n_dropped > REST_MAX_BODY ? MHD_NO : MHD_YES;
}

/* --- certificates ------------------------------------------------------------------------------------------------------ */

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

/* The subject (RFC 4514, as CN=nico,O=Example) of the client certificate of a session, owned; NULL: there is none, the CA of the
 * session did not sign it, it is not valid now, or it is not one for clients. */
static char *certificate_subject(gnutls_session_t session)
{
        const gnutls_datum_t *chain;
        unsigned n = 0;

        if (gnutls_certificate_type_get2(session, GNUTLS_CTYPE_PEERS) != GNUTLS_CRT_X509)
                return NULL;
        chain = gnutls_certificate_get_peers(session, &n);
        return chain && n > 0 && is_verified(session) ? subject_of(&chain[0]) : NULL;
}

static void verify_certificate(struct http_connection *c)
{
        const union MHD_ConnectionInfo *info;

        if (c->was_verified || !c->server->has_tls)
                return;
        c->was_verified = true;
        info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        c->certificate = info ? certificate_subject(info->tls_session) : NULL;
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

static struct http_request *request_free(struct http_request *q)
{
        (void) arena_free(q->arena);
        free(q);
        return NULL;
}
DEFINE_CLEANUP(struct http_request *, request_free)

/* The library has read the first line. NULL: out of memory; the connection ends. */
void *http_on_target(void *server, const char *target, struct MHD_Connection *mhd)
{
        _cleanup_(request_free_p) struct http_request *q = calloc(1, sizeof(*q));
        struct http_connection *c = http_connection_of(mhd);
        struct http_server *s = server;

        if (!q || !c)
                return NULL;
        *q = (struct http_request) { .server = s, .connection = c, .n_refs = 1, .from = c->admission.from, .arena = arena_new() };
        q->target = arena_strdup(q->arena, target);
        q->address = arena_strdup(q->arena, c->address);
        if (!q->target || !q->address)
                return NULL;
        c->request = q;
        if (c->deadline < USEC_INFINITY)
                c->deadline = clock_now() + s->conf->max_time; /* the timer elapses no later, and is then armed again */
        s->n_requests++;
        return STEAL(q);
}

static enum MHD_Result begin(struct http_request *q, const char *method)
{
        struct http_connection *c = q->connection;
        const char *length = MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, "Content-Length");
        struct scan s = { length, length ? length + strlen(length) : NULL };
        uint64_t n = 0;

        q->has_begun = true;
        q->method = arena_strdup(q->arena, method);
        if (!q->method)
                return MHD_NO;
        if (length && (!scan_number(&s, 10, UINT64_MAX - 1, &n) || is_too_long(q, n))) {
                refuse_body(q);
                return q->response.status > 0 ? queue_response(q) : MHD_NO;
        }
        verify_certificate(c);
        q->authorization = MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, "Authorization");
        q->certificate = c->certificate;
        c->server->handlers.begun(q, c->server->handlers.userdata);
        q->authorization = q->certificate = NULL;
        return MHD_YES;
}

/* The library has the whole request, or the request was resumed with its answer. */
static enum MHD_Result proceed(struct http_request *q)
{
        struct http_server *s = q->server;

        if (!q->is_complete) {
                q->is_complete = q->connection->admission.is_busy = true;
                if (q->response.status == 0)
                        s->handlers.complete(q, s->handlers.userdata);
        }
        if (q->response.status > 0 && !q->is_delayed)
                return queue_response(q);
        MHD_suspend_connection(q->connection->mhd);
        q->is_suspended = true;
        return MHD_YES;
}

enum MHD_Result http_on_request(void *, struct MHD_Connection *, const char *, const char *method, const char *,
                                const char *bytes, size_t *n_bytes, void **request)
{
        struct http_request *q = *request;
        enum MHD_Result result;

        if (!q || q->connection->deadline == USEC_INFINITY)
                return MHD_NO;
        if (!q->has_begun) {
                result = begin(q, method);
        } else if (*n_bytes > 0) {
                result = take_body(q, bytes, *n_bytes);
                *n_bytes = 0;
        } else {
                result = proceed(q);
        }
        return q->connection->deadline == USEC_INFINITY && !q->is_suspended ? MHD_NO : result;
}

void http_on_completed(void *, struct MHD_Connection *, void **request, enum MHD_RequestTerminationCode)
{
        struct http_request *q = *request;
        struct http_connection *c;

        *request = NULL;
        if (!q)
                return;
        c = q->connection;
        q->is_suspended = false;
        http_resume(q);
        q->connection = NULL;
        (void) http_request_unref(q);
        if (c->deadline == USEC_INFINITY)
                return;
        http_begin_wait(c);
        if (c->server->is_ending)
                http_cut(c);
}
