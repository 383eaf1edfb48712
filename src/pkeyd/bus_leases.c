/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_leases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pins/claims.h"
#include "pkeyd/bus_lease_message.h"
#include "policy/selector_match.h"
#include "shell/user.h"

#define INTERFACE      "org.pkeyd1.Leases"
#define ERROR_NO_LEASE "org.pkeyd1.Error.NoSuchLease"
#define ERROR_NO_ANSWER "org.pkeyd1.Error.NoAnswer" /* of the other head node */
#define ERROR_NOT_READY "org.pkeyd1.Error.NotReady"

#define BUS_PORT      "(ttyqsyy)" /* port GUID, node GUID, port, LID, host name, node type, state */
#define BUS_PORT_SIZE 48          /* about so many bytes, besides its name */

/* A caller that has no answer yet. */
struct bus_caller {
        struct bus_leases *leases;
        struct arena *arena;          /* owned; the names of the caller are in it */
        sd_bus_message *call;         /* owned; the texts of the request are in it */
        const char *client;           /* in it, too: of the REST API, for whom the caller asks; NULL: for itself */
        struct lease_request request;
};

/* --- callers that wait ----------------------------------------------------------------------------------------------- */

static void caller_remove(struct bus_caller *c)
{
        struct bus_leases *l = c->leases;

        for (size_t i = 0; i < l->n_callers; i++)
                if (l->callers[i] == c) {
                        l->callers[i] = l->callers[--l->n_callers];
                        break;
                }
        sd_bus_message_unref(c->call);
        arena_free(c->arena);
        free(c);
}

static void answer(struct bus_caller *c, const struct lease_reply *reply)
{
        static const struct findings none = {};
        struct bus_builder m = bus_begin_reply(c->call);

        bus_append(&m, "s", lease_outcome_to_string(reply->answer.outcome));
        bus_append_text(&m, reply->answer.text);
        bus_append_lease(&m, reply->answer.lease, c->leases->status, BUS_LEASE_HOLDERS);
        bus_append_findings(&m, reply->findings ?: &none);
        bus_send_reply(&m, c->call);
        caller_remove(c);
}

static struct bus_caller *find(const struct bus_leases *l, uint64_t number)
{
        for (size_t i = 0; i < l->n_callers; i++)
                if (l->callers[i]->request.by.request == number)
                        return l->callers[i];
        return NULL;
}

void bus_leases_answer(struct bus_leases *l, const struct lease_reply *reply)
{
        struct bus_caller *c = find(l, reply->answer.request);

        if (c)
                answer(c, reply);
}

const struct lease_request *bus_leases_find(const struct bus_leases *l, uint64_t number)
{
        const struct bus_caller *c = find(l, number);

        return c ? &c->request : NULL;
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

static void refuse(struct bus_caller *c, int r, const char *error, const char *text)
{
        if (r == -ENOMEM)
                (void) sd_bus_reply_method_errno(c->call, r, NULL);
        else
                (void) sd_bus_reply_method_errorf(c->call, error, "%s", text ?: "");
        caller_remove(c);
}

void bus_leases_refuse(struct bus_leases *l, uint64_t number, const char *why)
{
        struct bus_caller *c = find(l, number);

        if (c)
                refuse(c, 0, ERROR_NO_ANSWER, why);
}

/* Only the program that checked who its clients are may name one. */
static bool may_name_client(const struct bus_caller *c, uint32_t uid, const char *user)
{
        return !c->client || uid == 0 || strcmp(user, USER_PKEYD_REST) == 0;
}

/* Sets the names of the caller, by which leases/ decides: the client, if it names one, and the user. */
static int identify(struct bus_caller *c, uint32_t uid, const char *user)
{
        const char **names = arena_new_array(c->arena, const char *, 2);
        struct lease_caller *by = &c->request.by;

        if (!names)
                return -ENOMEM;
        by->origin = (struct origin) { .kind = ORIGIN_BUS, .uid = uid };
        (void) snprintf(by->origin.user, sizeof(by->origin.user), "%s%s", c->client ? "rest:" : "", c->client ?: user);
        by->names = names;
        if (c->client)
                names[by->n_names++] = by->origin.user;
        names[by->n_names++] = user;
        return 0;
}

/* Adds the names of the groups of the user. */
static int add_groups(struct bus_caller *c, const struct user *user)
{
        struct lease_caller *by = &c->request.by;
        const char **groups, **names;
        size_t n;
        int r = user_list_groups(c->arena, user, &groups, &n);

        if (r < 0)
                return r;
        names = arena_new_array(c->arena, const char *, by->n_names + n);
        if (!names)
                return -ENOMEM;
        memcpy(names, by->names, by->n_names * sizeof(*names));
        for (size_t i = 0; i < n; i++)
                names[by->n_names++] = groups[i];
        by->names = names;
        return 0;
}

static bool has_its_share(const struct bus_leases *l, uint32_t uid)
{
        size_t n = 0;

        for (size_t i = 0; i < l->n_callers; i++)
                n += l->callers[i]->arena && l->callers[i]->request.by.origin.uid == uid;
        return uid != 0 && n >= BUS_MAX_LEASE_CALLS_OF_USER;
}

/* Whether the caller may use the pool without regard to its groups. */
static bool is_allowed_by_name(const struct bus_caller *c)
{
        const struct control_status *s = c->leases->status;
        const struct lease_request *q = &c->request;
        const struct lease *lease = leases_find(s->leases, q->id);
        const char *name = q->kind == LEASE_CREATE ? q->wish.pool : q->kind == LEASE_EDIT ? q->edit.pool : lease ? lease->wish.pool : "";
        const struct policy_pool *pool = s->in_force ? policy_find_pool(s->in_force->policy, name) : NULL;

        return pool && leases_allow(pool, &q->by);
}

static int look_up(struct bus_caller *c, uint32_t uid)
{
        struct user user;
        int r = user_look_up(c->arena, uid, &user);

        if (r == 0 && !may_name_client(c, uid, user.name))
                return -EACCES;
        r = r ?: identify(c, uid, user.name);
        return r < 0 || is_allowed_by_name(c) ? r : add_groups(c, &user);
}

/* The answer may come before this returns, and frees the caller. */
static void ask(struct bus_caller *c, uint32_t uid)
{
        int r;

        if (has_its_share(c->leases, uid)) {
                char text[96];

                (void) snprintf(text, sizeof(text), "%d callers of uid %u already wait for leases; call again later",
                                BUS_MAX_LEASE_CALLS_OF_USER, (unsigned) uid);
                refuse(c, 0, BUS_ERROR_TOO_MANY, text);
                return;
        }
        c->arena = arena_new();
        r = c->arena ? look_up(c, uid) : -ENOMEM;
        if (r == -EACCES)
                refuse(c, 0, SD_BUS_ERROR_ACCESS_DENIED, "Client: only root and the user " USER_PKEYD_REST " may name one");
        else if (r < 0)
                refuse(c, r, NULL, NULL);
        else
                c->leases->asked(&c->request, c->leases->userdata);
}

static int on_sender_user(sd_bus_message *reply, void *userdata, sd_bus_error *)
{
        struct bus_caller *c = userdata;
        uint32_t uid;

        if (!bus_read_sender(reply, &uid))
                refuse(c, 0, SD_BUS_ERROR_ACCESS_DENIED, "the bus does not know the user of the caller");
        else if (c->leases->status->stopping)
                refuse(c, 0, BUS_ERROR_STOPPING, "pkeyd is stopping");
        else
                ask(c, uid);
        return 1;
}

/* Texts of a request are shown on terminals and kept in a record. Returns 0, or a negative errno with the error set. */
static int check_text(const char *what, const char *text, size_t max, sd_bus_error *error)
{
        if (strlen(text) > max)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s: longer than %zu bytes", what, max);
        for (; *text; text++)
                if ((unsigned char) *text < ' ' || *text == 0x7f || (*text == '\xc2' && (unsigned char) text[1] < 0xa0))
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s: has a control character", what);
        return 0;
}

static int check_request(const struct lease_request *q, sd_bus_error *error)
{
        size_t length = 0; /* of the members of all groups */
        int r = check_text("id", q->id, LEASE_MAX_TEXT, error);

        if (r == 0 && q->kind == LEASE_CREATE)
                r = check_text("pool", q->wish.pool, LEASE_MAX_TEXT, error) ?:
                    check_text("members", q->wish.members, LEASE_MAX_TEXT, error);
        if (r == 0 && q->kind == LEASE_EDIT)
                r = check_text("pool", q->edit.pool, LEASE_MAX_TEXT, error);
        for (size_t i = 0; r == 0 && q->kind == LEASE_EDIT && i < q->edit.n_groups; i++) {
                length += strlen(q->edit.groups[i].members);
                r = check_text("members", q->edit.groups[i].members, LEASE_MAX_EDIT_TEXT, error);
        }
        if (r == 0 && length > LEASE_MAX_EDIT_TEXT)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "members: longer than %d bytes in all groups",
                                         LEASE_MAX_EDIT_TEXT);
        return r;
}

/* Looks up the user of the caller, which waits until bus_leases_answer(). client: NULL, or in the message. */
static int take_call(struct bus_leases *l, sd_bus_message *call, const struct lease_request *request, const char *client,
                     sd_bus_error *error)
{
        int r = check_request(request, error);
        struct bus_caller *c;

        if (r < 0)
                return r;
        if (l->n_callers == BUS_MAX_LEASE_CALLS)
                return sd_bus_error_setf(error, BUS_ERROR_TOO_MANY, "%d callers already wait for leases; call again later",
                                         BUS_MAX_LEASE_CALLS);
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        *c = (struct bus_caller) { .leases = l, .call = sd_bus_message_ref(call), .client = client, .request = *request };
        c->request.by.request = ++l->last_request;
        l->callers[l->n_callers++] = c;
        r = bus_look_up_sender(call, on_sender_user, c, error);
        if (r < 0)
                caller_remove(c);
        return r < 0 ? r : 1;
}

/* --- methods --------------------------------------------------------------------------------------------------------- */

static int method_create(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_CREATE };
        const char *membership;
        int partial, r;

        r = sd_bus_message_read(call, "sssqsttb", &q.wish.pool, &q.id, &q.wish.members, &q.wish.base, &membership, &q.wish.seconds,
                                &q.timeout, &partial);
        if (r < 0)
                return r;
        q.wish.partial = partial;
        r = bus_read_membership(membership, &q.wish.membership, error) ?: bus_check_base(q.wish.base, error);
        return r < 0 ? r : take_call(userdata, call, &q, NULL, error);
}

static int method_edit(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_EDIT, .edit.n_groups = 1 };
        struct lease_group *group = &q.edit.groups[0];
        const char *what, *membership;
        int r = sd_bus_message_read(call, "sssqss", &q.edit.pool, &q.id, &what, &q.edit.base, &group->members, &membership);

        if (r < 0)
                return r;
        r = bus_read_edit_kind(what, &q.edit.kind, error) ?: bus_read_membership(membership, &group->membership, error) ?:
            bus_check_base(q.edit.base, error);
        return r < 0 ? r : take_call(userdata, call, &q, NULL, error);
}

static int method_edit_with(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_EDIT };
        const char *what, *client = NULL;
        int r = sd_bus_message_read(call, "sssq", &q.edit.pool, &q.id, &what, &q.edit.base);

        if (r < 0)
                return r;
        r = bus_read_edit_kind(what, &q.edit.kind, error) ?: bus_check_base(q.edit.base, error) ?:
            bus_read_groups(call, &q.edit, error) ?: bus_read_edit_options(call, &q.edit.options, &client, error);
        return r < 0 ? r : take_call(userdata, call, &q, client, error);
}

static int method_renew(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_RENEW };
        int r = sd_bus_message_read(call, "st", &q.id, &q.seconds);

        return r < 0 ? r : take_call(userdata, call, &q, NULL, error);
}

/* Release and ReleaseWith: the latter has options, too. */
static int method_release(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_RELEASE };
        const char *client = NULL;
        int r = sd_bus_message_read(call, "s", &q.id);

        if (r >= 0 && !sd_bus_message_has_signature(call, "s"))
                r = bus_read_release_options(call, &client, error);
        return r < 0 ? r : take_call(userdata, call, &q, client, error);
}

/* pool: "": of all pools. */
static bool is_listed(const struct lease *lease, const char *pool)
{
        return lease->state != LEASE_ENDED && (*pool == '\0' || strcmp(lease->wish.pool, pool) == 0);
}

static int answer_list(const struct bus_leases *l, sd_bus_message *call, const char *pool, enum bus_lease_detail detail,
                       sd_bus_error *error)
{
        size_t n;
        const struct lease *const *items = leases_list(l->status->leases, &n);
        struct bus_builder reply;
        int r = bus_check_queue(call, error);

        if (r < 0)
                return r;
        reply = bus_begin_reply(call);
        bus_open(&reply, 'a', "a{sv}");
        for (size_t i = 0; i < n; i++)
                if (is_listed(items[i], pool))
                        bus_append_lease(&reply, items[i], l->status, detail);
        bus_close(&reply);
        return bus_send(&reply);
}

static int method_list(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return answer_list(userdata, call, "", BUS_LEASE_FACTS, error);
}

static int method_list_whole(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const struct bus_leases *l = userdata;
        const struct lease *const *items;
        const char *pool;
        size_t n, size = 0;
        int r = sd_bus_message_read(call, "s", &pool);

        if (r < 0)
                return r;
        items = leases_list(l->status->leases, &n);
        for (size_t i = 0; i < n; i++)
                size += is_listed(items[i], pool) ? bus_lease_size(items[i]) : 0;
        r = bus_check_size(size, error);
        return r < 0 ? r : answer_list(userdata, call, pool, BUS_LEASE_WHOLE, error);
}

static int method_show(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const struct bus_leases *l = userdata;
        const struct lease *lease;
        struct bus_builder reply;
        const char *id;
        int r = sd_bus_message_read(call, "s", &id);

        if (r >= 0)
                r = bus_check_queue(call, error);
        if (r < 0)
                return r;
        lease = lease_id_problem(id) ? NULL : leases_find(l->status->leases, id);
        if (!lease)
                return sd_bus_error_setf(error, ERROR_NO_LEASE, "there is no lease %s", lease_id_problem(id) ? "with this ID" : id);
        reply = bus_begin_reply(call);
        bus_append_lease(&reply, lease, l->status, BUS_LEASE_HOLDERS);
        return bus_send(&reply);
}

static size_t size_of(const struct subnet *s)
{
        size_t size = 0;

        for (uint32_t i = 0; i < s->n_by_port_guid; i++)
                size += BUS_PORT_SIZE + strlen(s->nodes[s->ports[s->by_port_guid[i]].node].name);
        return size;
}

static void append_port(struct bus_builder *b, const struct matcher *names, const struct subnet_port *p)
{
        const struct subnet_node *node = &names->subnet->nodes[p->node];

        bus_append(b, BUS_PORT, p->guid.v, node->guid.v, p->number, p->lid.v, names->has_twin[p->node] ? "" : node->name, node->type,
                   p->state);
}

/* The endports of the snapshot, by the names that count for the policy; a contested name (policy/selector_match.h) is empty,
 * because clients use the names to choose members by GUID. */
static int method_ports(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const struct control_status *status = ((struct bus_leases *) userdata)->status;
        _cleanup_arena_ struct arena *a = arena_new();
        const struct subnet *s = NULL;
        struct bus_builder reply;
        struct matcher names;
        int r;

        if (!status->snapshot || !status->snapshot->subnet)
                return sd_bus_error_set(error, ERROR_NOT_READY, "pkeyd has not seen the fabric yet; call again later");
        r = a ? pins_view(a, status->pins, status->snapshot->subnet, &s) ?: matcher_init(&names, a, NULL, s, NULL) : -ENOMEM;
        r = r ?: bus_check_queue(call, error) ?: bus_check_size(size_of(s), error);
        if (r < 0)
                return r;
        reply = bus_begin_reply(call);
        bus_open(&reply, 'a', BUS_PORT);
        for (uint32_t i = 0; i < s->n_by_port_guid; i++)
                append_port(&reply, &names, &s->ports[s->by_port_guid[i]]);
        bus_close(&reply);
        return bus_send(&reply);
}

static int method_default_membership(sd_bus_message *call, void *userdata, sd_bus_error *)
{
        const struct bus_leases *l = userdata;
        const struct generation *g = l->status->in_force;
        enum membership m = g ? policy_default_membership(g->policy) : MEMBERSHIP_NONE;

        return sd_bus_reply_method_return(call, "s", m == MEMBERSHIP_NONE ? "" : m == MEMBERSHIP_LIMITED ? "limited" : "full");
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Create", "sssqsttb", "ssa{sv}a" BUS_FINDING, method_create, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Edit", "sssqss", "ssa{sv}a" BUS_FINDING, method_edit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("EditWith", "sssqa(ssb)a{sv}", "ssa{sv}a" BUS_FINDING, method_edit_with, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Renew", "st", "ssa{sv}a" BUS_FINDING, method_renew, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Release", "s", "ssa{sv}a" BUS_FINDING, method_release, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ReleaseWith", "sa{sv}", "ssa{sv}a" BUS_FINDING, method_release, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("List", "", "aa{sv}", method_list, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListWhole", "s", "aa{sv}", method_list_whole, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Show", "s", "a{sv}", method_show, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Ports", "", "a" BUS_PORT, method_ports, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("DefaultMembership", "", "s", method_default_membership, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* --- life ------------------------------------------------------------------------------------------------------------ */

void bus_leases_init(struct bus_leases *l, const struct control_status *status, bus_leases_asked_t *asked, void *userdata)
{
        *l = (struct bus_leases) { .status = status, .asked = asked, .userdata = userdata };
}

int bus_leases_connect(struct bus_leases *l, sd_bus *bus, const char *path)
{
        int r = sd_bus_add_object_vtable(bus, NULL, path, INTERFACE, vtable, l);

        return r < 0 ? r : 0;
}

void bus_leases_drop(struct bus_leases *l)
{
        while (l->n_callers > 0)
                caller_remove(l->callers[0]);
}
