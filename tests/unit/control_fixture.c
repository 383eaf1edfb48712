/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control_fixture.h"

#include <stdlib.h>

#include "control/control_internal.h"
#include "opensm/partitions_conf.h"
#include "opensm/phases.h"

struct fabsim f;
unsigned head, leaf, hosts[N_HOSTS];
unsigned n_sets, n_gets;
unsigned out_of_reach;
bool (*lose)(const struct mad_request *request, struct fabsim_place at);
void (*before_request)(const struct mad_request *request);
struct control *c;
struct arena *arena;
struct findings findings;
usec_t now, wall_offset;
struct noted noted;
bool is_inside;
struct logged logged[MAX_LOGGED];
size_t n_logged;

static struct control_action waiting[MAX_ACTIONS];
static unsigned n_waiting;
static struct control_action taken;
static char paths[CONTROL_MAX_FILES][4096]; /* of the action that waits; its own are gone by then */
static struct fixture_file files[MAX_FILES];
struct guid local_guid;

/* --- the fabric --- */

struct fabsim_port *port_of(unsigned node)
{
        return &f.nodes[node].ports[1];
}

bool holds(unsigned node, uint16_t key)
{
        const struct fabsim_port *p = port_of(node);

        for (unsigned i = 0; i < p->capacity; i++)
                if (p->table[i].v == key)
                        return true;
        return false;
}

void put_key(unsigned node, unsigned index, uint16_t key)
{
        port_of(node)->table[index].v = key;
}

void hear_table(unsigned node)
{
        const struct knowledge_name name = { f.nodes[node].guid, 1, KNOWLEDGE_ENDPORT };

        knowledge_see_block(c->knowledge, knowledge_find(c->knowledge, name), 0, port_of(node)->table);
}

const char *refusal_of_a_set(void)
{
        const struct mad_request set = { .route.lid = { 1 }, .method = MAD_SET, .attribute = SMP_ATTR_P_KEY_TABLE };
        struct mad_gate gate = control_gate(c);
        struct mad_frame frame;

        mad_request_encode(&set, 1, &frame);
        ck_assert(!gate.admit(gate.state, &frame));
        return gate_refusal(c->gate);
}

/* Every endport in the default partition, as a subnet manager leaves it. */
static void make_fabric(void)
{
        char name[32];

        fabsim_init(&f);
        head = fabsim_add_node(&f, NODE_CA, 1, 64, "head1 mlx5_0");
        leaf = fabsim_add_node(&f, NODE_SWITCH, 8, 8, "MF0;leaf1:MQM8700/U1");
        fabsim_set_enforcement_cap(&f, leaf, 32, true, true);
        fabsim_connect(&f, head, 1, leaf, 1);
        put_key(head, 0, 0xffff);
        port_of(head)->lid.v = 1;
        f.nodes[leaf].ports[0].lid.v = 2;
        f.nodes[leaf].ports[0].table[0].v = 0x7fff;
        for (unsigned i = 0; i < N_HOSTS; i++) {
                (void) snprintf(name, sizeof(name), "node%u mlx5_0", i + 1);
                hosts[i] = fabsim_add_node(&f, NODE_CA, 1, 64, name);
                fabsim_connect(&f, hosts[i], 1, leaf, (uint8_t) (i + 2));
                put_key(hosts[i], 0, 0x7fff);
                port_of(hosts[i])->lid.v = (uint16_t) (3 + i);
        }
        f.self = f.sm = (struct fabsim_place) {head, 1};
        local_guid = port_of(head)->guid;
}

void move_to_other_fabric(uint64_t by)
{
        for (unsigned n = 0; n < f.n_nodes; n++) {
                f.nodes[n].guid.v += by;
                for (unsigned p = 0; p <= f.nodes[n].num_ports; p++)
                        f.nodes[n].ports[p].guid.v += f.nodes[n].ports[p].guid.v > 0 ? by : 0;
        }
        local_guid.v += by;
}

/* --- files --- */

struct fixture_file *file_at(const char *path)
{
        unsigned i = 0;

        while (*files[i].path && strcmp(files[i].path, path) != 0)
                i++;
        ck_assert_uint_lt(i, MAX_FILES - 1);
        (void) snprintf(files[i].path, sizeof(files[i].path), "%s", path);
        return &files[i];
}

static void put_bytes(const char *path, const char *bytes, size_t n)
{
        struct fixture_file *file = file_at(path);
        char *copy = calloc(1, n + 1);

        memcpy(copy, bytes, n);
        free(file->bytes);
        file->bytes = copy;
        file->n = n;
}

void put_file(const char *path, const char *text)
{
        put_bytes(path, text, strlen(text));
}

static void set_table(struct fabsim_port *p, const struct p_key *keys, uint32_t n)
{
        memset(p->table, 0, sizeof(p->table));
        for (uint32_t i = 0; i < n && i < p->capacity; i++)
                p->table[i] = keys[i];
}

/* As OpenSM does it: whoever the file does not name is a limited member of the default partition, and a switch port
 * that can enforce holds what its host does. */
void opensm_reads_file(void)
{
        static const struct p_key limited = {P_KEY_DEFAULT_BASE};
        const struct fixture_file *file = file_at(FILE_CONF);
        struct partitions_conf *conf;
        struct opensm_tables tables;
        struct findings ignored = { .arena = arena };

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, FILE_CONF, file->bytes, file->n, &ignored, &conf), 0);
        ck_assert_int_eq(opensm_tables_of_file(arena, conf, &tables), 0);
        findings_done(&ignored);
        for (unsigned n = 0; n < f.n_nodes; n++) {
                struct fabsim_place at = {n, n == leaf ? 0 : 1}, beside;
                const struct p_key *keys = &limited;
                uint32_t n_keys = 1;

                for (uint32_t i = 0; i < tables.n_ports; i++)
                        if (tables.ports[i].guid.v == fabsim_port_at(&f, at)->guid.v) {
                                keys = tables.ports[i].keys;
                                n_keys = tables.ports[i].n_keys;
                        }
                if (n == out_of_reach)
                        continue;
                set_table(fabsim_port_at(&f, at), keys, n_keys);
                if (!fabsim_peer(&f, at, &beside))
                        continue;
                set_table(fabsim_port_at(&f, beside), keys, n_keys);
                fabsim_port_at(&f, beside)->enforce_inbound = fabsim_port_at(&f, beside)->enforce_outbound = true;
        }
}

/* --- the log --- */

static void note_entry(const struct log_entry *entry)
{
        struct logged *l = &logged[n_logged];

        ck_assert_uint_lt(n_logged, MAX_LOGGED);
        if (entry->event == LOG_EVENT_DEBUG)
                return;
        n_logged++;
        *l = (struct logged) {
                        .event = entry->event,
                        .generation = entry->about.generation,
                        .port_guid = entry->about.port_guid,
                        .is_finding = entry->finding,
        };
        (void) snprintf(l->text, sizeof(l->text), "%s", entry->text);
        (void) snprintf(l->node, sizeof(l->node), "%s", entry->about.node ? entry->about.node : "");
}

unsigned count_logged(enum log_event event)
{
        unsigned n = 0;

        for (size_t i = 0; i < n_logged; i++)
                n += logged[i].event == event;
        return n;
}

const struct logged *last_logged(enum log_event event)
{
        for (size_t i = n_logged; i > 0; i--)
                if (logged[i - 1].event == event)
                        return &logged[i - 1];
        ck_abort_msg("event %d was not logged", (int) event);
}

void expect_logged(enum log_event event, const char *part)
{
        const struct logged *l = last_logged(event);

        ck_assert_msg(strstr(l->text, part) != NULL, "'%s' is not in '%s'", part, l->text);
}

void forget_log(void)
{
        n_logged = 0;
}

/* --- actions --- */

static void note_answer(const struct reload_end *end)
{
        noted.n_answers++;
        noted.outcome = end->outcome;
        noted.answered_generation = end->generation;
        (void) snprintf(noted.answer, sizeof(noted.answer), "%s", end->text);
        noted.n_requests = end->n_requests;
        noted.n_findings = end->findings->n;
        noted.code = end->findings->n > 0 ? end->findings->items[end->findings->n - 1].code : FINDING_BUG;
        noted.n_withdrawn += noted.code == FINDING_RELOAD_WITHDRAWN;
        ck_assert_uint_le(end->n_requests, ELEMENTS(noted.requests));
        for (size_t i = 0; i < end->n_requests; i++)
                noted.requests[i] = end->requests[i];
}

int store_r;
bool store_waits;
bool shares_store, lock_is_held, store_is_outdated;
static bool is_abandoned; /* the stage that waits */
static bool must_store;

static bool has_prefix(const struct store_transaction *t, const char *prefix)
{
        for (size_t i = 0; i < t->n; i++)
                if (strncmp(t->ops[i].key, prefix, strlen(prefix)) == 0)
                        return true;
        return false;
}

/* Records of leases, as a store keeps them. */
static struct kept_record {
        char *key, *value;
        size_t n;
} kept[64];
static size_t n_kept;

static void keep_record(const struct store_op *op)
{
        size_t i = 0;

        while (i < n_kept && strcmp(kept[i].key, op->key) != 0)
                i++;
        ck_assert_uint_lt(i, ELEMENTS(kept));
        if (i < n_kept) {
                free(kept[i].key);
                free(kept[i].value);
                kept[i] = kept[--n_kept];
        }
        if (op->value)
                kept[n_kept++] = (struct kept_record) { strdup(op->key), strndup(op->value, op->n), op->n };
}

static void keep_leases(const struct store_transaction *t)
{
        for (size_t i = 0; i < t->n; i++)
                if (strncmp(t->ops[i].key, RECORDS_LEASE, strlen(RECORDS_LEASE)) == 0 ||
                    strncmp(t->ops[i].key, RECORDS_REST, strlen(RECORDS_REST)) == 0)
                        keep_record(&t->ops[i]);
        noted.n_leases += has_prefix(t, RECORDS_LEASE);
}

static void restore_leases(struct remembered *m)
{
        for (size_t i = 0; i < n_kept; i++)
                ck_assert_int_eq(remembered_restore(m, kept[i].key, kept[i].value, kept[i].n), 0);
        ck_assert_uint_eq(m->n_damaged, 0);
}

size_t n_kept_records(void)
{
        return n_kept;
}

static void note_generation(const struct store_op *op)
{
        struct generation_key key;

        if (!generation_key_read(op->key, &key))
                return;
        if (key.what == GENERATION_FACTS && op->value)
                (void) snprintf(noted.stored_facts, sizeof(noted.stored_facts), "%.*s", (int) op->n, (const char *) op->value);
        if (key.what != GENERATION_POLICY || key.part > 0)
                return;
        noted.n_generations++;
        noted.stored_generation = key.number;
}

static void note_transaction(const struct store_transaction *t)
{
        if (store_r == 0)
                keep_leases(t);
        noted.n_stored++;
        noted.n_ops = t->n;
        noted.n_indexes += has_prefix(t, RECORDS_INDEX);
        noted.n_known += has_prefix(t, RECORDS_KNOWN);
        noted.n_pins += has_prefix(t, RECORDS_PIN);
        noted.n_tables += has_prefix(t, KNOWLEDGE_PREFIX);
        noted.n_facts += has_prefix(t, RECORDS_GENERATION);
        for (size_t i = 0; i < t->n; i++)
                note_generation(&t->ops[i]);
}

static void add_waiting(const struct control_action *action)
{
        struct control_action *a = &waiting[n_waiting++];

        ck_assert_uint_le(n_waiting, ELEMENTS(waiting));
        *a = *action;
        if (a->kind != CONTROL_READ_FILES && a->kind != CONTROL_WRITE_FILE)
                return;
        for (unsigned i = 0; i < CONTROL_MAX_FILES && a->files[i].path; i++) {
                (void) snprintf(paths[i], sizeof(paths[i]), "%s", a->files[i].path);
                a->files[i].path = paths[i];
        }
}

static void note_lease(const struct lease_reply *reply)
{
        const struct lease_answer *a = &reply->answer;
        size_t n = reply->findings ? reply->findings->n : 0;

        noted.n_lease_answers++;
        noted.n_of_outcome[a->outcome]++;
        noted.lease_request = a->request;
        noted.lease_outcome = a->outcome;
        noted.leased_base = a->lease ? a->lease->base : 0;
        (void) snprintf(noted.lease_text, sizeof(noted.lease_text), "%s", n > 0 ? reply->findings->items[n - 1].text : a->text);
        if (n > 0)
                noted.code = reply->findings->items[n - 1].code;
}

static void note(const struct control_action *action)
{
        ck_assert_msg(!noted.exited, "an action after the end");
        switch (action->kind) {
        case CONTROL_LOG:
                note_entry(action->entry);
                return;
        case CONTROL_ANSWER:
                note_answer(action->end);
                return;
        case CONTROL_ANSWER_LEASE:
                note_lease(action->lease);
                return;
        case CONTROL_ABANDON_STAGE:
                ck_assert_uint_eq(n_waiting, 1);
                ck_assert_int_eq(waiting[0].kind, CONTROL_RUN_STAGE);
                noted.n_abandoned++;
                is_abandoned = true;
                return;
        case CONTROL_UNLOCK:
                noted.n_unlocked++;
                return;
        case CONTROL_LOAD_UNDO:
                noted.n_undos++;
                noted.undo = *action->undo;
                return;
        case CONTROL_CLOSE_PORT:
                noted.n_closed++;
                return;
        case CONTROL_EXIT:
                noted.exited = true;
                noted.exit_r = action->r;
                return;
        case CONTROL_STORE:
                note_transaction(action->transaction);
                must_store = !store_waits;
                if (store_waits)
                        add_waiting(action);
                return;
        case CONTROL_OPEN_PORT:
        case CONTROL_RUN_STAGE:
        case CONTROL_FOLLOW_STORE:
        case CONTROL_LOCK:
        case CONTROL_READ_LOCAL_TABLES:
        case CONTROL_READ_FILES:
        case CONTROL_WRITE_FILE:
        case CONTROL_SIGNAL_OPENSM:
        case CONTROL_CHOOSE_TABLES:
        case CONTROL_ASK_PERSON:
                add_waiting(action);
                return;
        }
}

bool waits(void)
{
        return n_waiting > 0;
}

bool is_next(enum control_action_kind kind)
{
        return n_waiting > 0 && waiting[0].kind == kind;
}

const struct mad_stage *stage_to_run(void)
{
        return n_waiting == 1 && waiting[0].kind == CONTROL_RUN_STAGE && !is_abandoned ? waiting[0].stage : NULL;
}

const struct control_action *take(enum control_action_kind kind)
{
        ck_assert_msg(n_waiting > 0, "no action waits, in state %d", (int) state());
        taken = waiting[0];
        ck_assert_msg(taken.kind == kind, "action %d instead of %d", (int) taken.kind, (int) kind);
        memmove(waiting, waiting + 1, --n_waiting * sizeof(*waiting));
        return &taken;
}

void take_nothing(void)
{
        ck_assert_msg(n_waiting == 0, "action %d waits", (int) waiting[0].kind);
}

/* --- events --- */

int give(struct control_event *event)
{
        struct control_action action;
        int r;

        event->wall = wall_offset + now;
        is_inside = true;
        r = control_event(c, now, event);
        is_inside = false;
        while (control_next_action(c, &action))
                note(&action);
        if (must_store) {
                must_store = false;
                ck_assert_int_eq(give_stored(store_r), 0);
        }
        return r;
}

void drop_actions(void)
{
        n_waiting = 0;
        must_store = false;
}

int give_kind(enum control_event_kind kind)
{
        return give(&(struct control_event) {.kind = kind});
}

int give_port(int r)
{
        struct control_event event = {
                        .kind = CONTROL_EVENT_PORT,
                        .port = {.r = r,
                                 .name = "mlx5_0 port 1",
                                 .guid = local_guid,
                                 .host_guids = &local_guid,
                                 .n_host_guids = 1},
        };

        return give(&event);
}

int give_stage_end(int r)
{
        return give(&(struct control_event) {.kind = CONTROL_EVENT_STAGE_ENDED, .r = r});
}

int give_lock(int r, int pid)
{
        char holder[32];

        snprintf(holder, sizeof(holder), "process %d", pid);
        return give(&(struct control_event) {.kind = CONTROL_EVENT_LOCK, .lock = {.r = r, .holder = holder}});
}

int give_stored(int r)
{
        return give(&(struct control_event) {.kind = CONTROL_EVENT_STORED, .r = r});
}

bool writes_are_stored(const struct store_transaction *t, unsigned node)
{
        char key[STORE_KEY_MAX + 1];

        (void) snprintf(key, sizeof(key), KNOWLEDGE_PREFIX "endport/0x%016" PRIx64 "/1", f.nodes[node].guid.v);
        for (size_t i = 0; i < t->n; i++)
                if (strcmp(t->ops[i].key, key) == 0)
                        return strstr(arena_strndup(arena, t->ops[i].value, t->ops[i].n), "\"writes\":[{\"block\":0,");
        return false;
}

int give_verbs(enum verbs_event_kind kind)
{
        return give(&(struct control_event) {.kind = CONTROL_EVENT_VERBS, .verbs = {kind, "mlx5_0", local_guid, 1}});
}

int give_file_written(int r)
{
        return give(&(struct control_event) {.kind = CONTROL_EVENT_FILE_WRITTEN, .r = r});
}

int give_signalled(int r)
{
        return give(&(struct control_event) {.kind = CONTROL_EVENT_OPENSM_SIGNALLED,
                                            .opensm = {r, "there is no OpenSM"}});
}

static void refuse_files(struct findings *ret)
{
        *ret = (struct findings) { .arena = arena };
        ck_assert_ptr_nonnull(findings_add(ret, FINDING_ERROR, FINDING_VALUE_INVALID,
                                           &(struct location) {"partitions.yaml", 3, 1}, "pkey: 'x' is no P_Key"));
}

struct generation *make_generation(const char *settings, const char *policy)
{
        struct generation *g = generation_new();
        _cleanup_findings_ struct findings ignored = { .arena = g->arena };

        ck_assert_int_eq(generation_read_settings(g, "pkeyd.yaml", arena_strdup(g->arena, settings), strlen(settings),
                                                  &ignored),
                         0);
        ck_assert_int_eq(generation_read_policy(g, "partitions.yaml", arena_strdup(g->arena, policy), strlen(policy),
                                                &ignored),
                         0);
        return g;
}

int give_generation(struct generation *candidate, uint64_t request)
{
        _cleanup_findings_ struct findings loaded = {};
        struct control_event event = {
                        .kind = CONTROL_EVENT_CANDIDATE,
                        .candidate = {.generation = candidate, .findings = &loaded, .request = request},
        };

        loaded = (struct findings) { .arena = arena };
        if (!candidate)
                refuse_files(&loaded);
        return give(&event);
}

int give_candidate(const char *settings, const char *policy, uint64_t request)
{
        return give_generation(policy ? make_generation(settings, policy) : NULL, request);
}

int give_undo(const char *settings, const char *policy)
{
        struct generation *g = policy ? make_generation(settings, policy) : NULL;
        struct findings none = {};
        struct control_event event = {
                .kind = CONTROL_EVENT_CANDIDATE,
                .candidate = { .generation = g, .findings = &none, .is_undo = true, .request = noted.undo.request },
        };

        if (g)
                g->facts = (struct generation_facts) {
                        .origin = noted.undo.by, .undoes = noted.undo.undoes, .restores = noted.undo.number,
                };
        return give(&event);
}

static bool says_lock_is_held(void *userdata)
{
        (void) userdata;
        return lock_is_held;
}

static bool says_store_is_outdated(void *userdata)
{
        (void) userdata;
        return store_is_outdated;
}

void start_generation(enum control_goal goal, struct generation *candidate, struct generation *in_force)
{
        const struct control_config config = {
                        .goal = goal,
                        .program = "pkeyd 1",
                        .findings = &findings,
                        .shares_store = shares_store,
                        .holds_lock = says_lock_is_held,
                        .is_outdated = says_store_is_outdated,
        };
        _cleanup_findings_ struct findings loaded = {};
        struct control_event event = {
                        .kind = CONTROL_EVENT_START,
                        .start = {.remembered = remembered_new("this boot"),
                                  .in_force = in_force,
                                  .candidate = candidate,
                                  .findings = &loaded},
        };

        event.start.remembered->generation = in_force ? in_force->number : 0;
        restore_leases(event.start.remembered);

        loaded = (struct findings) { .arena = arena };
        if (!candidate)
                refuse_files(&loaded);
        if (!c)
                c = control_new(&config);
        ck_assert_int_eq(give(&event), 0);
}

void start_with(enum control_goal goal, const char *settings, const char *policy, struct generation *in_force)
{
        start_generation(goal, settings ? make_generation(settings, policy) : NULL, in_force);
}

void start(const char *settings, const char *policy)
{
        start_with(CONTROL_SERVE, settings, policy, NULL);
}

void wait_until_due(void)
{
        usec_t due = control_due(c);

        ck_assert(due != USEC_INFINITY);
        now = MAX(now, due);
        ck_assert_int_eq(give_kind(CONTROL_EVENT_DUE), 0);
}

/* --- stages --- */

/* Through the gate, as a shell sends it. */
static bool ask_fabric(const struct mad_request *request, struct mad_result *ret)
{
        const struct mad_gate gate = control_gate(c);
        struct mad_frame frame, response;
        struct fabsim_place at;
        uint16_t mad_status;
        unsigned hops;

        mad_request_encode(request, 1, &frame);
        if (!lock_is_held && request->method == MAD_SET && !gate.admit(gate.state, &frame)) {
                ret->outcome = MAD_UNSENT;
                return true;
        }
        ck_assert(c ? gate.admit(gate.state, &frame) : request->method == MAD_GET);
        if (!fabsim_route(&f, &frame, &at, &hops) || (lose && lose(request, at)) ||
            !fabsim_answer(&f, now, at, &frame, &response))
                return false;
        ck_assert_int_eq(mad_check_response(request, &response, &mad_status), 0);
        ret->outcome = mad_status ? MAD_REFUSED : MAD_ANSWERED;
        ret->mad_status = mad_status;
        mad_frame_get_data(&response, MAD_CLASS_SMP, ret->data);
        return true;
}

static void see_result(const struct mad_result *result)
{
        const struct mad_gate gate = control_gate(c);

        if (c)
                gate.see(gate.state, result);
}

void run_stage(const struct mad_stage *stage)
{
        struct mad_request request;
        struct mad_result result;

        for (;;) {
                bool any;

                is_inside = true;
                any = stage->next(stage->state, now, &request);
                is_inside = false;
                if (!any)
                        break;
                if (before_request)
                        before_request(&request);
                n_sets += request.method == MAD_SET;
                n_gets += request.method == MAD_GET;
                result = (struct mad_result) {
                        .cookie = request.cookie, .mgmt_class = request.mgmt_class, .attribute = request.attribute,
                        .modifier = request.modifier, .route = request.route,
                };
                if (!ask_fabric(&request, &result))
                        result.outcome = MAD_TIMED_OUT;
                see_result(&result);
                is_inside = true;
                stage->result(stage->state, now, &result);
                is_inside = false;
        }
        ck_assert(stage->done(stage->state));
}

/* --- a healthy host --- */

static void read_local_tables(struct control_event *ret, struct local_table *table)
{
        *table = (struct local_table) {local_guid, port_of(head)->table, port_of(head)->capacity};
        ret->kind = CONTROL_EVENT_LOCAL_TABLES;
        ret->local.tables = table;
        ret->local.n = 1;
}

static void read_files(const struct control_action *action, struct control_event *ret)
{
        ret->kind = CONTROL_EVENT_FILES_READ;
        for (unsigned i = 0; i < CONTROL_MAX_FILES && action->files[i].path; i++) {
                const struct fixture_file *file = file_at(action->files[i].path);

                ret->files[i] = (struct control_file) {action->files[i].path, file->bytes, file->n,
                                                      file->r       ? file->r
                                                      : file->bytes ? 0
                                                                    : -ENOENT};
        }
}

void answer(void)
{
        struct control_event event = {};
        struct local_table table;
        const struct control_action *action;

        ck_assert_msg(n_waiting > 0, "nothing to answer in state %d", (int) state());
        action = take(waiting[0].kind);
        switch (action->kind) {
        case CONTROL_OPEN_PORT:
                ck_assert_int_eq(give_port(0), 0);
                return;
        case CONTROL_RUN_STAGE:
                if (is_abandoned) {
                        is_abandoned = false;
                        ck_assert_int_eq(give_stage_end(-ECANCELED), 0);
                        return;
                }
                run_stage(action->stage);
                ck_assert_int_eq(give_stage_end(0), 0);
                return;
        case CONTROL_LOCK:
                ck_assert_int_eq(give_lock(0, 0), 0);
                return;
        case CONTROL_FOLLOW_STORE:
                event.kind = CONTROL_EVENT_FOLLOWED;
                break;
        case CONTROL_READ_LOCAL_TABLES:
                read_local_tables(&event, &table);
                break;
        case CONTROL_READ_FILES:
                read_files(action, &event);
                break;
        case CONTROL_WRITE_FILE:
                put_bytes(action->files[0].path, action->files[0].bytes, action->files[0].n);
                event.kind = CONTROL_EVENT_FILE_WRITTEN;
                break;
        case CONTROL_SIGNAL_OPENSM:
                if (action->signal)
                        opensm_reads_file();
                event.kind = CONTROL_EVENT_OPENSM_SIGNALLED;
                break;
        case CONTROL_CHOOSE_TABLES:
                event.kind = CONTROL_EVENT_TABLES_CHOSEN;
                break;
        case CONTROL_ASK_PERSON:
                event.kind = CONTROL_EVENT_PERSON_ANSWERED;
                event.yes = true;
                break;
        case CONTROL_STORE:
                event.kind = CONTROL_EVENT_STORED;
                event.r = store_r;
                break;
        case CONTROL_LOAD_UNDO:
        case CONTROL_ABANDON_STAGE:
        case CONTROL_CLOSE_PORT:
        case CONTROL_UNLOCK:
        case CONTROL_LOG:
        case CONTROL_ANSWER:
        case CONTROL_ANSWER_LEASE:
        case CONTROL_EXIT:
                ck_abort_msg("action %d has no answer", (int) action->kind);
        }
        ck_assert_int_eq(give(&event), 0);
}

enum control_state state(void)
{
        return status()->state;
}

const struct control_status *status(void)
{
        return control_get_status(c);
}

void until(enum control_state wanted)
{
        for (unsigned n = 0; state() != wanted; n++) {
                ck_assert_msg(n < 100, "state %d instead of %d", (int) state(), (int) wanted);
                if (waits())
                        answer();
                else
                        wait_until_due();
        }
}

void sweep(void)
{
        ck_assert_int_ne(state(), CONTROL_IDLE);
        while (state() != CONTROL_IDLE && state() != CONTROL_ENDED) {
                if (waits())
                        answer();
                else
                        wait_until_due();
        }
}

void live_until(usec_t when)
{
        for (unsigned n = 0; n < 1000; n++) {
                if (waits()) {
                        answer();
                        continue;
                }
                if (control_due(c) > when)
                        break;
                wait_until_due();
        }
        ck_assert(!waits());
        now = MAX(now, when);
}

/* --- each test --- */

void setup(void)
{
        arena = arena_new();
        findings = (struct findings) { .arena = arena };
        noted = (struct noted) {};
        n_waiting = n_sets = n_gets = 0;
        n_logged = 0;
        store_r = 0;
        store_waits = must_store = shares_store = store_is_outdated = false;
        lock_is_held = true;
        lose = NULL;
        out_of_reach = UINT32_MAX;
        before_request = NULL;
        now = 1000 * USEC_PER_SEC;
        wall_offset = UINT64_C(1700000000) * USEC_PER_SEC;
        c = NULL;
        memset(files, 0, sizeof(files));
        make_fabric();
}

void teardown(void)
{
        c = control_free(c);
        findings_done(&findings);
        arena_free(arena);
        for (unsigned i = 0; i < MAX_FILES; i++)
                free(files[i].bytes);
        for (size_t i = 0; i < n_kept; i++) {
                free(kept[i].key);
                free(kept[i].value);
        }
        n_kept = 0;
}

int run_suite(const char *name, const TTest *const *tests, size_t n)
{
        Suite *s = suite_create(name);
        TCase *t = tcase_create(name);
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 120); /* against a test that hangs; a busy host is slow */
        for (size_t i = 0; i < n; i++)
                tcase_add_test(t, tests[i]);
        suite_add_tcase(s, t);
        runner = srunner_create(s);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
