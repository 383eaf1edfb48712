/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a request of the REST API: a line with method and target, then the body. Either there is a change of a partition,
 * or a response that is JSON. The same bytes as rest.yaml, and as a header of credentials. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "rest/rest_conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct rest_member members[] = { { { 1 }, MEMBERSHIP_FULL, true, "node01" } };
static const struct rest_partition partitions[] = { { .base = 5, .members = members, .n_members = 1 } };
static const struct rest_port ports[] = { { .guid = { 1 }, .number = 1, .node_name = "\xff", .is_computer = true } };
static const struct rest_view view = { .partitions = partitions, .n_partitions = 1, .ports = ports, .n_ports = 1 };

static void check_change(const struct rest_change *c)
{
        if (c->base < 1 || c->base >= P_KEY_DEFAULT_BASE || c->n_members > REST_MAX_GUIDS)
                abort();
        for (uint32_t i = 0; i < c->n_members; i++)
                if (c->members[i].guid.v == 0 || (i > 0 && c->members[i - 1].guid.v >= c->members[i].guid.v))
                        abort();
}

static void check_response(const struct rest_response *r)
{
        json_t *j = json_loadb(r->body, r->n_body, 0, NULL);

        if (!j || r->status < 200 || r->status > 499 || r->n_body > 1024)
                abort();
        json_decref(j);
}

static void check_request(struct arena *a, const uint8_t *data, size_t n)
{
        const char *newline = n > 0 ? memchr(data, '\n', n) : NULL;
        char *line = arena_strndup(a, (const char *) data, newline ? (size_t) (newline - (const char *) data) : n);
        char *blank = line ? strchr(line, ' ') : NULL;
        struct rest_request q = { .method = line, .target = blank ? blank + 1 : "" };
        const struct rest_client *client;
        struct rest_reply reply;

        if (!line)
                abort();
        if (blank)
                *blank = '\0';
        if (newline) {
                q.body = newline + 1;
                q.n_body = n - (size_t) (q.body - (const char *) data);
        }
        if (rest_handle(a, &q, &view, &reply) < 0)
                abort();
        if (reply.is_change)
                check_change(&reply.change);
        else
                check_response(&reply.response);
        if (rest_authenticate(&(struct rest_conf) {}, rest_prefix_of(q.target), q.method, NULL, &client) != -EACCES)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct arena *a = arena_new();
        struct rest_conf *conf = NULL;
        struct findings findings = { .arena = a };
        int r;

        check_request(a, data, n);
        r = rest_conf_parse(a, "rest.yaml", (const char *) data, n, &findings, &conf);
        if ((r != 0 && r != -EBADMSG) || (r == 0) != (conf != NULL) || (r == 0) == findings_refuse(&findings))
                abort();
        for (size_t i = 0; i < findings.n; i++)
                if (findings.items[i].source_line || !finding_format(a, &findings.items[i]))
                        abort();
        findings_done(&findings);
        arena_free(a);
        return 0;
}
