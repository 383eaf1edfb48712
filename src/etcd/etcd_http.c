/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "etcd/etcd_http.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "shell/shell.h"
#include "shell/timer.h"
#include "util/text.h"

#define ANSWER_MAX      ((size_t) 256 << 20) /* bytes */
#define CONNECT_MSEC    1000L
#define ATTEMPT         (1500 * USEC_PER_MSEC) /* how long one member may take */
#define PAUSE           (100 * USEC_PER_MSEC)  /* after all members failed */
#define PROBLEM_MAX     400
#define PASSWORD_MAX    4096 /* bytes of its file */

/* google.rpc.Code */
#define GRPC_NOT_FOUND       5
#define GRPC_DENIED          7
#define GRPC_EXHAUSTED       8
#define GRPC_RANGE           11
#define GRPC_UNAVAILABLE     14
#define GRPC_UNAUTHENTICATED 16

struct etcd_request {
        struct etcd_http *http;
        LIST_ENTRY(etcd_request) in_list;
        char *path, *body;
        usec_t deadline;
        etcd_answer_handler handler;
        void *userdata;

        CURL *easy;                 /* of the attempt under way; NULL: it waits for `pause` */
        struct curl_slist *headers;
        char *credentials;          /* the body, if it fetches a token */
        struct text answer;
        bool is_too_large;          /* the answer */
        bool authenticates;         /* the attempt fetches a token */
        bool has_new_token;         /* it was fetched for this request */
        size_t member, n_tried;     /* the member of this attempt, and how many attempts there were before it */
        sd_event_source *pause;
        bool certificate_refused;   /* of a member: libcurl does not accept it */
};

/* A socket of libcurl. */
struct watched {
        sd_event_source *source;
        struct etcd_http *http;
};

struct etcd_http {
        sd_event *event;
        const struct etcd_config *config;
        CURLM *multi;
        sd_event_source *timer;
        LIST_HEAD(, etcd_request) requests;
        char *token;
        size_t member;              /* the one that answered last */
        char problem[PROBLEM_MAX];
};

const char *etcd_http_problem(const struct etcd_http *h)
{
        return h->problem;
}

static void __attribute__((format(printf, 2, 3))) set_problem(struct etcd_http *h, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(h->problem, sizeof(h->problem), format, ap);
        va_end(ap);
}

static void free_secret(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

static void end_attempt(struct etcd_request *q)
{
        if (q->easy) {
                (void) curl_multi_remove_handle(q->http->multi, q->easy);
                curl_easy_cleanup(q->easy);
        }
        q->easy = NULL;
        free_secret(STEAL(q->credentials));
        curl_slist_free_all(q->headers);
        q->headers = NULL;
        text_done(&q->answer);
        q->is_too_large = false;
}

void etcd_http_drop(struct etcd_request *q)
{
        if (!q)
                return;
        LIST_REMOVE(q, in_list);
        end_attempt(q);
        q->pause = sd_event_source_disable_unref(q->pause);
        free(q->path);
        free_secret(q->body);
        free(q);
}

static void end_request(struct etcd_request *q, int r, json_t *answer)
{
        etcd_answer_handler handler = q->handler;
        void *userdata = q->userdata;

        etcd_http_drop(q);
        if (handler)
                handler(r, answer, userdata);
}

static size_t receive_bytes(char *bytes, size_t size, size_t n, void *userdata)
{
        struct etcd_request *q = userdata;

        (void) size; /* always 1 */
        q->is_too_large = n > ANSWER_MAX - q->answer.n;
        if (q->is_too_large)
                return 0;
        text_add_n(&q->answer, bytes, n);
        return q->answer.failed ? 0 : n;
}

/* --- an attempt ------------------------------------------------------------------------------------------------------- */

static const char *endpoint(const struct etcd_request *q)
{
        return q->http->config->endpoints[q->member];
}

static int set_tls(CURL *easy, const struct etcd_config *config)
{
        bool ok = curl_easy_setopt(easy, CURLOPT_SSLCERT, config->cert_file) == CURLE_OK &&
                  curl_easy_setopt(easy, CURLOPT_SSLKEY, config->key_file) == CURLE_OK;

#if LIBCURL_VERSION_NUM >= 0x075700
        /* with OpenSSL, libcurl keeps the CAs for a day, also if the file is replaced; other libraries do not know the option */
        (void) curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
        if (ok && config->ca_file) /* and no other */
                ok = curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
        return ok ? 0 : -ENOMEM;
}

static int add_header(struct etcd_request *q, const char *text)
{
        struct curl_slist *more = curl_slist_append(q->headers, text);

        if (!more)
                return -ENOMEM;
        q->headers = more;
        return 0;
}

static int set_headers(struct etcd_request *q)
{
        const char *token = q->authenticates ? NULL : q->http->token;
        int r = add_header(q, "Content-Type: application/json") ?: add_header(q, "Expect:");
        char *line;

        if (r < 0 || !token)
                return r;
        if (asprintf(&line, "Authorization: %s", token) < 0)
                return -ENOMEM;
        r = add_header(q, line);
        free_secret(line);
        return r;
}

int etcd_read_password(const char *file, struct findings *findings, struct secret *ret)
{
        int r = secret_read(file, "etcd_password", PASSWORD_MAX, findings, ret);

        if (r == 0 && ret->bytes)
                ret->bytes[strcspn(ret->bytes, "\r\n")] = '\0';
        return r;
}

static char *make_credentials(const struct etcd_config *config)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings ignored = { .arena = a };
        _cleanup_secret_ struct secret now = {};
        bool is_read = a && etcd_read_password(config->password_file, &ignored, &now) == 0 && now.bytes;
        _cleanup_json_ json_t *body = json_pack("{ss, ss}", "name", config->user, "password",
                                                is_read ? now.bytes : config->password ?: "");

        return body ? json_dumps(body, JSON_COMPACT) : NULL;
}

/* libcurl borrows the body. */
static int set_body(struct etcd_request *q)
{
        const char *body = q->body;

        if (q->authenticates)
                body = q->credentials = make_credentials(q->http->config);
        return body && curl_easy_setopt(q->easy, CURLOPT_POSTFIELDS, body) == CURLE_OK ? 0 : -ENOMEM;
}

static int set_url(struct etcd_request *q)
{
        _cleanup_free_ char *url = NULL;

        if (asprintf(&url, "%s%s", endpoint(q), q->authenticates ? "/v3/auth/authenticate" : q->path) < 0)
                return -ENOMEM;
        return curl_easy_setopt(q->easy, CURLOPT_URL, url) == CURLE_OK ? 0 : -ENOMEM;
}

/* Neither redirects nor proxies: a store is where the settings say. */
static int set_options(struct etcd_request *q, usec_t timeout)
{
        CURL *e = q->easy;
        bool ok = curl_easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK &&
                  curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                  curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MSEC) == CURLE_OK &&
                  curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long) (timeout / USEC_PER_MSEC)) == CURLE_OK &&
                  curl_easy_setopt(e, CURLOPT_HTTPHEADER, q->headers) == CURLE_OK &&
                  curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, receive_bytes) == CURLE_OK &&
                  curl_easy_setopt(e, CURLOPT_WRITEDATA, q) == CURLE_OK &&
                  curl_easy_setopt(e, CURLOPT_PRIVATE, q) == CURLE_OK;

        return ok ? 0 : -ENOMEM;
}

static int try_member(struct etcd_request *q)
{
        struct etcd_http *h = q->http;
        usec_t now = clock_now(), left = q->deadline > now ? q->deadline - now : 0;
        int r;

        if (left < USEC_PER_MSEC)
                return -EHOSTUNREACH;
        q->authenticates = h->config->user && !h->token;
        q->easy = curl_easy_init();
        if (!q->easy)
                return -ENOMEM;
        r = set_headers(q) ?: set_body(q) ?: set_url(q) ?: set_tls(q->easy, h->config) ?: set_options(q, MIN(left, ATTEMPT));
        if (r == 0 && curl_multi_add_handle(h->multi, q->easy) != CURLM_OK)
                r = -ENOMEM;
        return r;
}

static void begin_attempt(struct etcd_request *q)
{
        int r;

        end_attempt(q);
        r = try_member(q);
        if (r < 0)
                end_request(q, r == -EHOSTUNREACH && q->certificate_refused ? -EKEYREJECTED : r, NULL);
}

static int on_pause_ended(sd_event_source *, uint64_t, void *userdata)
{
        begin_attempt(userdata);
        return 0;
}

/* After all members failed, it waits before it begins with the first one again. */
static void try_next(struct etcd_request *q)
{
        struct etcd_http *h = q->http;
        usec_t due = clock_now();

        end_attempt(q);
        q->member = (q->member + 1) % h->config->n_endpoints;
        if (++q->n_tried % h->config->n_endpoints == 0)
                due = MIN(due + PAUSE, q->deadline);
        if (timer_set(q->pause, due) < 0)
                end_request(q, -ENOMEM, NULL);
}

/* --- answers ---------------------------------------------------------------------------------------------------------- */

/* Text of other hosts, for a message: only printable characters of it. */
static const char *printable(const char *text, char ret[PROBLEM_MAX / 2])
{
        size_t n = 0;

        for (; text[n] && n < PROBLEM_MAX / 2 - 1; n++)
                ret[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
        ret[n] = '\0';
        return ret;
}

/* A JWT is valid until a user or a role changes. */
static bool is_token_refused(json_int_t code, const char *message)
{
        return code == GRPC_UNAUTHENTICATED || strstr(message, "revision of auth store is old");
}

static int error_of(json_int_t code, const char *message)
{
        switch (code) {
        case GRPC_NOT_FOUND:
                return -ENOENT;
        case GRPC_DENIED:
        case GRPC_UNAUTHENTICATED:
                return -EACCES;
        case GRPC_EXHAUSTED:
                return strstr(message, "space") ? -ENOSPC : strstr(message, "larger") ? -EMSGSIZE : -EHOSTUNREACH;
        case GRPC_RANGE:
                return -ESTALE;
        case GRPC_UNAVAILABLE:
                return -EHOSTUNREACH;
        }
        if (strstr(message, "request is too large"))
                return -EMSGSIZE;
        if (is_token_refused(code, message) || strstr(message, "authentication failed") || strstr(message, "permission denied") ||
            strstr(message, "user name is empty"))
                return -EACCES;
        /* a member that lost its leader answers some requests like this */
        return strstr(message, "timed out") || strstr(message, "leader") ? -EHOSTUNREACH : -EINVAL;
}

/* etcd answered with an error. */
static void handle_error(struct etcd_request *q, const json_t *answer)
{
        struct etcd_http *h = q->http;
        const char *message = json_string_value(json_object_get(answer, "message"));
        json_int_t code = json_integer_value(json_object_get(answer, "code"));
        char text[PROBLEM_MAX / 2];
        int r;

        if (!message)
                message = json_string_value(json_object_get(answer, "error"));
        if (!message) { /* the gateway itself refuses with a line of text */
                const char *line = q->answer.failed || !q->answer.bytes ? "no answer from etcd" : q->answer.bytes;

                set_problem(h, "%s: %.*s", endpoint(q), (int) strcspn(line, "\r\n"), printable(line, text));
                end_request(q, strstr(line, "CommonName") ? -EACCES : -EPROTO, NULL);
                return;
        }
        r = error_of(code, message);
        set_problem(h, "%s: %s", endpoint(q), printable(message, text));
        if (is_token_refused(code, message) && h->config->user && !q->authenticates && !q->has_new_token) {
                free_secret(STEAL(h->token));
                begin_attempt(q);
        } else if (r == -EHOSTUNREACH) {
                try_next(q);
        } else {
                end_request(q, r, NULL);
        }
}

static void handle_token(struct etcd_request *q, const json_t *answer)
{
        const char *token = json_string_value(json_object_get(answer, "token"));

        free_secret(q->http->token);
        q->http->token = token ? strdup(token) : NULL;
        q->has_new_token = true;
        if (q->http->token)
                begin_attempt(q);
        else
                end_request(q, token ? -ENOMEM : -EPROTO, NULL);
}

static void handle_answer(struct etcd_request *q, long status)
{
        struct etcd_http *h = q->http;
        _cleanup_json_ json_t *answer = json_loadb(q->answer.bytes ?: "", q->answer.n, 0, NULL);

        h->member = q->member;
        if (status != 200) {
                handle_error(q, answer);
        } else if (!json_is_object(answer)) {
                set_problem(h, "%s: the answer is not from etcd", endpoint(q));
                end_request(q, -EPROTO, NULL);
        } else if (q->authenticates) {
                handle_token(q, answer);
        } else {
                h->problem[0] = '\0';
                end_request(q, 0, answer);
        }
}

/* The member could not be reached. */
static void handle_failure(struct etcd_request *q, CURLcode code)
{
        struct etcd_http *h = q->http;

        set_problem(h, "%s: %s", endpoint(q), curl_easy_strerror(code));
        if (code == CURLE_OUT_OF_MEMORY || q->answer.failed) {
                end_request(q, -ENOMEM, NULL);
                return;
        }
        if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM)
                q->certificate_refused = true;
        if (q->is_too_large)
                end_request(q, -EPROTO, NULL);
        else
                try_next(q);
}

static void handle_finished(struct etcd_http *h)
{
        const CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(h->multi, &left))) {
                struct etcd_request *q = NULL;
                CURLcode code = message->data.result;
                long status = 0;

                if (message->msg != CURLMSG_DONE)
                        continue;
                (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &q);
                (void) curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
                if (code == CURLE_OK)
                        handle_answer(q, status);
                else
                        handle_failure(q, code);
        }
}

/* --- libcurl on the loop ---------------------------------------------------------------------------------------------- */

static int on_socket(sd_event_source *, int fd, uint32_t events, void *userdata)
{
        const struct watched *w = userdata;
        struct etcd_http *h = w->http;
        int flags = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                    (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        int running;

        (void) curl_multi_socket_action(h->multi, fd, flags, &running); /* may free w */
        handle_finished(h);
        return 0;
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
        struct etcd_http *h = userdata;
        int running;

        (void) curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        handle_finished(h);
        return 0;
}

static void unwatch(struct etcd_http *h, curl_socket_t fd, struct watched *w)
{
        (void) curl_multi_assign(h->multi, fd, NULL);
        sd_event_source_disable_unref(w->source);
        free(w);
}

static int watch_socket(CURL *, curl_socket_t fd, int what, void *userdata, void *of_socket)
{
        struct etcd_http *h = userdata;
        struct watched *w = of_socket;
        uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

        if (what == CURL_POLL_REMOVE) {
                if (w)
                        unwatch(h, fd, w);
                return 0;
        }
        if (w)
                return sd_event_source_set_io_events(w->source, events) < 0 ? -1 : 0;
        w = calloc(1, sizeof(*w));
        if (!w)
                return -1;
        w->http = h;
        if (sd_event_add_io(h->event, &w->source, fd, events, on_socket, w) < 0 || curl_multi_assign(h->multi, fd, w) != CURLM_OK) {
                unwatch(h, fd, w);
                return -1;
        }
        return 0;
}

static int set_timer(CURLM *, long msec, void *userdata)
{
        struct etcd_http *h = userdata;

        return timer_set(h->timer, msec < 0 ? USEC_INFINITY : clock_now() + (usec_t) msec * USEC_PER_MSEC) < 0 ? -1 : 0;
}

/* --- the interface ---------------------------------------------------------------------------------------------------- */

int etcd_http_new(sd_event *event, const struct etcd_config *config, struct etcd_http **ret)
{
        _cleanup_(etcd_http_free_p) struct etcd_http *h = calloc(1, sizeof(*h));
        int r;

        assert(config->n_endpoints > 0);
        if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return -ENOMEM;
        h->event = sd_event_ref(event);
        h->config = config;
        h->multi = curl_multi_init();
        if (!h->multi)
                return -ENOMEM;
        r = sd_event_add_time(event, &h->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, h);
        if (r < 0)
                return r;
        if (curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, watch_socket) != CURLM_OK ||
            curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) != CURLM_OK ||
            curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer) != CURLM_OK ||
            curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h) != CURLM_OK)
                return -ENOMEM;
        *ret = STEAL(h);
        return 0;
}

struct etcd_http *etcd_http_free(struct etcd_http *h)
{
        if (!h)
                return NULL;
        while (!LIST_EMPTY(&h->requests))
                etcd_http_drop(LIST_FIRST(&h->requests));
        if (h->multi)
                (void) curl_multi_cleanup(h->multi);
        sd_event_source_disable_unref(h->timer);
        sd_event_unref(h->event);
        free_secret(h->token);
        free(h);
        return NULL;
}

int etcd_http_post(struct etcd_http *h, const char *path, json_t *body, usec_t timeout, etcd_answer_handler handler, void *userdata,
                   struct etcd_request **ret)
{
        _cleanup_json_ json_t *mine = body;
        struct etcd_request *q = mine ? calloc(1, sizeof(*q)) : NULL;
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct etcd_request) {
                .http = h, .path = strdup(path), .body = json_dumps(mine, JSON_COMPACT), .deadline = clock_now() + timeout,
                .handler = handler, .userdata = userdata, .member = h->member,
        };
        LIST_INSERT_HEAD(&h->requests, q, in_list);
        r = q->path && q->body ? 0 : -ENOMEM;
        if (r == 0) /* the first attempt begins on the loop, too, so that no handler is called before this returns */
                r = sd_event_add_time(h->event, &q->pause, CLOCK_MONOTONIC, 0, 1, on_pause_ended, q);
        if (r < 0) {
                etcd_http_drop(q);
                return r;
        }
        if (ret)
                *ret = q;
        return 0;
}

const char *etcd_http_explain(int r)
{
        switch (r) {
        case -EHOSTUNREACH:
                return "no member answers, or the cluster has no majority";
        case -EACCES:
                return "etcd denies access to this user";
        case -EKEYREJECTED:
                return "the certificate of a member cannot be verified";
        case -EPROTO:
                return "the answer is not one of etcd 3.4 or later";
        case -ESTALE:
                return "etcd compacted it while it was read";
        case -ENOSPC:
                return "its database is full";
        case -EMSGSIZE:
                return "a record is larger than etcd accepts (--max-request-bytes)";
        }
        return NULL;
}

struct call {
        bool ended;
        int r;
        json_t *answer;
};

static void on_called(int r, json_t *answer, void *userdata)
{
        struct call *c = userdata;

        c->ended = true;
        c->r = r;
        c->answer = json_incref(answer);
}

void etcd_http_settle(struct etcd_http *h)
{
        if (sd_event_get_state(h->event) == SD_EVENT_ARMED && sd_event_wait(h->event, 0) > 0)
                (void) sd_event_dispatch(h->event);
}

int etcd_http_call(struct etcd_http *h, const char *path, json_t *body, usec_t timeout, json_t **ret)
{
        struct call c = {};
        struct etcd_request *q = NULL;
        int r = etcd_http_post(h, path, body, timeout, on_called, &c, &q);

        etcd_http_settle(h);
        while (r >= 0 && !c.ended)
                r = sd_event_run(h->event, UINT64_MAX);
        if (!c.ended) {
                etcd_http_drop(q);
                return r;
        }
        *ret = c.answer;
        return c.r;
}
