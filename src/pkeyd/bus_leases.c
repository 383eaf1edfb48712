/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_leases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkeyd/bus_message.h"
#include "shell/user.h"

#define INTERFACE      "org.pkeyd1.Leases"
#define LEASE_MEMBER   "(ttysqqs)" /* port GUID, node GUID, port, name, index, P_Key, state */
#define ERROR_NO_LEASE "org.pkeyd1.Error.NoSuchLease"

/* A caller that has no answer yet. */
struct caller {
        struct bus_leases *leases;
        sd_bus_message *call;         /* owned; the texts of the request are in it */
        struct lease_request request;
};

struct bus_leases {
        const struct control_status *status;
        bus_leases_asked_t *asked;
        void *userdata;
        struct caller *callers[BUS_MAX_LEASE_CALLS]; /* owned */
        size_t n_callers;
        uint64_t last_request;
};

/* --- a lease as a dictionary ----------------------------------------------------------------------------------------- */

static const char *member_state(const struct lease_member *m)
{
        return m->left_out ? "left-out" : m->is_unseen ? "unseen" : m->confirmed ? "confirmed" : "waits";
}

static int append_member(sd_bus_message *m, const struct lease *lease, const struct lease_member *member)
{
        struct p_key key = p_key_make(lease->base, member->membership == MEMBERSHIP_FULL);
        int r = sd_bus_message_open_container(m, 'r', "ttysqqs");

        if (r >= 0)
                r = sd_bus_message_append(m, "tty", member->port.v, member->node.v, member->number);
        if (r >= 0)
                r = bus_append_text(m, member->name);
        if (r >= 0)
                r = sd_bus_message_append(m, "qqs", member->confirmed ? member->index : 0, key.v, member_state(member));
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_members(sd_bus_message *m, const struct lease *lease)
{
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', "Members");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "a" LEASE_MEMBER);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', LEASE_MEMBER);
        for (uint32_t i = 0; r >= 0 && i < lease->n_members; i++)
                r = lease->members[i].is_leaving ? 0 : append_member(m, lease, &lease->members[i]);
        for (size_t depth = 0; r >= 0 && depth < 3; depth++)
                r = sd_bus_message_close_container(m);
        return r;
}

/* The entries that every answer has. */
static int append_facts(sd_bus_message *m, const struct lease *lease)
{
        const char *state = lease_state_to_string(lease->state), *membership = membership_to_string(lease->membership);
        uint64_t created = lease->created * USEC_PER_SEC, ends = lease->ends * USEC_PER_SEC;
        uint32_t n_members = lease_n_wanted(lease), n_confirmed = lease_n_confirmed(lease);
        int is_open = lease->is_open;
        char number[16];
        const char *owner = lease->owner.user;
        int r;

        if (*owner == '\0') {
                (void) snprintf(number, sizeof(number), "%" PRIu32, lease->owner.uid);
                owner = number;
        }
        const struct { const char *key, *signature; const void *value; } entries[] = {
                { "Id", "s", &lease->id }, { "Pool", "s", &lease->wish.pool }, { "State", "s", &state }, { "PKey", "q", &lease->base },
                { "Membership", "s", &membership }, { "Owner", "s", &owner }, { "Created", "t", &created }, { "Ends", "t", &ends },
                { "NMembers", "u", &n_members }, { "NConfirmed", "u", &n_confirmed },
                { "Open", "b", &is_open },
        };

        r = lease->why ? bus_append_variant(m, "Why", "s", &lease->why) : 0;
        for (size_t i = 0; r >= 0 && i < ELEMENTS(entries); i++)
                r = bus_append_variant(m, entries[i].key, entries[i].signature, entries[i].value);
        return r;
}

/* An a{sv}. lease NULL: an empty one. is_whole: with what can be large. */
static int append_lease(sd_bus_message *m, const struct lease *lease, bool is_whole)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0 && lease)
                r = append_facts(m, lease);
        if (r >= 0 && lease && is_whole)
                r = bus_append_variant(m, "Selectors", "s", &lease->wish.members);
        if (r >= 0 && lease && is_whole)
                r = append_members(m, lease);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* --- callers that wait ----------------------------------------------------------------------------------------------- */

static void caller_remove(struct caller *c)
{
        struct bus_leases *l = c->leases;

        for (size_t i = 0; i < l->n_callers; i++)
                if (l->callers[i] == c) {
                        l->callers[i] = l->callers[--l->n_callers];
                        break;
                }
        sd_bus_message_unref(c->call);
        free(c);
}

static int append_reply(sd_bus_message *m, const struct lease_reply *reply)
{
        static const struct findings none = {};
        const struct lease_answer *answer = &reply->answer;
        int r = sd_bus_message_append(m, "s", lease_outcome_to_string(answer->outcome));

        if (r >= 0)
                r = bus_append_text(m, answer->text);
        if (r >= 0)
                r = append_lease(m, answer->lease, true);
        return r < 0 ? r : bus_append_findings(m, reply->findings ?: &none, BUS_MAX_FINDINGS);
}

/* If there is no memory for the answer, the caller gets an error, which needs less. */
static void answer(struct caller *c, const struct lease_reply *reply)
{
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_return(c->call, &m);

        if (r >= 0)
                r = append_reply(m, reply);
        if (r >= 0)
                r = sd_bus_send(NULL, m, NULL);
        if (r < 0)
                (void) sd_bus_reply_method_errno(c->call, r, NULL);
        caller_remove(c);
}

void bus_leases_answer(struct bus_leases *l, const struct lease_reply *reply)
{
        for (size_t i = 0; i < l->n_callers; i++)
                if (l->callers[i]->request.by.request == reply->answer.request) {
                        answer(l->callers[i], reply);
                        return;
                }
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

static void refuse(struct caller *c, int r, const char *error, const char *text)
{
        if (r == -ENOMEM)
                (void) sd_bus_reply_method_errno(c->call, r, NULL);
        else
                (void) sd_bus_reply_method_errorf(c->call, error, "%s", text ?: "");
        caller_remove(c);
}

/* The answer may come before this returns, and frees the caller. */
static void ask(struct caller *c, uint32_t uid)
{
        _cleanup_message_ sd_bus_message *call = sd_bus_message_ref(c->call);
        _cleanup_arena_ struct arena *a = arena_new();
        struct bus_leases *l = c->leases;
        struct lease_request request;
        int r = a ? user_list_names(a, uid, &c->request.by.names, &c->request.by.n_names) : -ENOMEM;

        if (r < 0) {
                refuse(c, r, NULL, NULL);
                return;
        }
        c->request.by.origin = (struct origin) { .kind = ORIGIN_BUS, .uid = uid };
        (void) snprintf(c->request.by.origin.user, sizeof(c->request.by.origin.user), "%s", c->request.by.names[0]);
        request = c->request;
        c->request.by.names = NULL;
        c->request.by.n_names = 0;
        l->asked(&request, l->userdata);
}

static int on_sender_user(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        struct caller *c = userdata;
        uint32_t uid;

        (void) error;
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
        int r = check_text("id", q->id, LEASE_MAX_TEXT, error);

        if (r == 0 && q->kind == LEASE_CREATE)
                r = check_text("pool", q->wish.pool, LEASE_MAX_TEXT, error) ?:
                    check_text("members", q->wish.members, LEASE_MAX_TEXT, error);
        if (r == 0 && q->kind == LEASE_EDIT)
                r = check_text("pool", q->edit.pool, LEASE_MAX_TEXT, error);
        for (size_t i = 0; r == 0 && q->kind == LEASE_EDIT && i < q->edit.n_groups; i++)
                r = check_text("members", q->edit.groups[i].members, LEASE_MAX_EDIT_TEXT, error);
        return r;
}

/* Looks up who calls; the caller waits until bus_leases_answer(). */
static int take_call(struct bus_leases *l, sd_bus_message *call, const struct lease_request *request, sd_bus_error *error)
{
        int r = check_request(request, error);
        struct caller *c;

        if (r < 0)
                return r;
        if (l->n_callers == BUS_MAX_LEASE_CALLS)
                return sd_bus_error_setf(error, BUS_ERROR_TOO_MANY, "%d callers already wait for leases; call again later",
                                         BUS_MAX_LEASE_CALLS);
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        *c = (struct caller) { .leases = l, .call = sd_bus_message_ref(call), .request = *request };
        c->request.by.request = ++l->last_request;
        l->callers[l->n_callers++] = c;
        r = bus_look_up_sender(call, on_sender_user, c, error);
        if (r < 0)
                caller_remove(c);
        return r < 0 ? r : 1;
}

/* --- methods --------------------------------------------------------------------------------------------------------- */

static int read_membership(const char *word, enum membership *ret, sd_bus_error *error)
{
        if (strcmp(word, "") == 0)
                *ret = MEMBERSHIP_NONE;
        else if (strcmp(word, "full") == 0)
                *ret = MEMBERSHIP_FULL;
        else if (strcmp(word, "limited") == 0)
                *ret = MEMBERSHIP_LIMITED;
        else
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "membership: accepted are \"full\", \"limited\", and \"\" for that of the pool");
        return 0;
}

static int check_base(uint16_t base, sd_bus_error *error)
{
        if (base <= P_KEY_BASE_MASK)
                return 0;
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "pkey: give it without its high bit, which is the membership");
}

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
        r = read_membership(membership, &q.wish.membership, error) ?: check_base(q.wish.base, error);
        return r < 0 ? r : take_call(userdata, call, &q, error);
}

static int read_edit_kind(const char *word, enum lease_edit_kind *ret, sd_bus_error *error)
{
        if (strcmp(word, "add") == 0)
                *ret = LEASE_ADD_MEMBERS;
        else if (strcmp(word, "remove") == 0)
                *ret = LEASE_REMOVE_MEMBERS;
        else if (strcmp(word, "set") == 0)
                *ret = LEASE_SET_MEMBERS;
        else
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "what: accepted are \"add\", \"remove\" and \"set\"");
        return 0;
}

static int method_edit(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_EDIT, .edit.n_groups = 1 };
        struct lease_group *group = &q.edit.groups[0];
        const char *what, *membership;
        int r = sd_bus_message_read(call, "sssqss", &q.edit.pool, &q.id, &what, &q.edit.base, &group->members, &membership);

        if (r < 0)
                return r;
        r = read_edit_kind(what, &q.edit.kind, error) ?: read_membership(membership, &group->membership, error) ?:
            check_base(q.edit.base, error);
        return r < 0 ? r : take_call(userdata, call, &q, error);
}

static int method_renew(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_RENEW };
        int r = sd_bus_message_read(call, "st", &q.id, &q.seconds);

        return r < 0 ? r : take_call(userdata, call, &q, error);
}

static int method_release(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct lease_request q = { .kind = LEASE_RELEASE };
        int r = sd_bus_message_read(call, "s", &q.id);

        return r < 0 ? r : take_call(userdata, call, &q, error);
}

static int append_leases(sd_bus_message *m, const struct leases *leases)
{
        size_t n;
        const struct lease *const *items = leases_list(leases, &n);
        int r = sd_bus_message_open_container(m, 'a', "a{sv}");

        for (size_t i = 0; r >= 0 && i < n; i++)
                if (items[i]->state != LEASE_ENDED)
                        r = append_lease(m, items[i], false);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int method_list(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        struct bus_leases *l = userdata;
        int r = bus_check_queue(call, error);

        if (r == 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_leases(reply, l->status->leases);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_show(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        const struct lease *lease = NULL;
        struct bus_leases *l = userdata;
        const char *id;
        int r = sd_bus_message_read(call, "s", &id);

        if (r >= 0)
                r = bus_check_queue(call, error);
        if (r < 0)
                return r;
        lease = lease_id_problem(id) ? NULL : leases_find(l->status->leases, id);
        if (!lease)
                return sd_bus_error_setf(error, ERROR_NO_LEASE, "there is no lease %s", lease_id_problem(id) ? "with this ID" : id);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_lease(reply, lease, true);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Create", "sssqsttb", "ssa{sv}a" BUS_FINDING, method_create, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Edit", "sssqss", "ssa{sv}a" BUS_FINDING, method_edit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Renew", "st", "ssa{sv}a" BUS_FINDING, method_renew, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Release", "s", "ssa{sv}a" BUS_FINDING, method_release, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("List", "", "aa{sv}", method_list, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Show", "s", "a{sv}", method_show, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* --- life ------------------------------------------------------------------------------------------------------------ */

int bus_leases_new(const struct control_status *status, bus_leases_asked_t *asked, void *userdata, struct bus_leases **ret)
{
        struct bus_leases *l = calloc(1, sizeof(*l));

        if (!l)
                return -ENOMEM;
        *l = (struct bus_leases) { .status = status, .asked = asked, .userdata = userdata };
        *ret = l;
        return 0;
}

struct bus_leases *bus_leases_free(struct bus_leases *l)
{
        bus_leases_drop(l);
        free(l);
        return NULL;
}

int bus_leases_connect(struct bus_leases *l, sd_bus *bus, const char *path)
{
        int r = sd_bus_add_object_vtable(bus, NULL, path, INTERFACE, vtable, l);

        return r < 0 ? r : 0;
}

void bus_leases_drop(struct bus_leases *l)
{
        while (l && l->n_callers > 0)
                caller_remove(l->callers[0]);
}
