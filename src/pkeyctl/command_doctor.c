/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor/doctor.h"
#include "opensm/partitions_file.h"
#include "pkeyctl/commands.h"
#include "session/bus_client.h"
#include "shell/file.h"
#include "shell/findings_print.h"
#include "shell/secret.h"
#include "shell/user.h"
#include "shell/verbs_port.h"

#define DEFAULT_OPENSM_CONF "/etc/opensm/opensm.conf"

/* A port that does not answer is a diagnosis: it gets less time than one whose table has to be written. */
#define PROBE_RETRIES 3

struct doctor_result {
        const struct doctor_facts *facts; /* without a subnet: the fabric could not be read, findings say why */
        struct diagnoses diagnoses;
};

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *place_object(struct doc *d, const struct diagnosis_place *place)
{
        json_t *o = place->port != SUBNET_NONE ? doc_port(d, place->port, "{}") : json_object();

        if (*place->text)
                doc_add(d, o, "{s:o}", "text", doc_text(place->text));
        return o;
}

/* The keys of a finding, and more. */
static json_t *diagnosis_object(struct doc *d, const struct diagnosis *item)
{
        const struct diagnosis_words *words = &diagnosis_words[item->code];

        return json_pack("{s:n, s:i, s:i, s:s, s:s, s:o, s:o, s:i, s:o, s:o}", "file", "line", 0, "column", 0,
                         "severity", finding_severity_to_string(words->severity), "code", words->code, "text", doc_text(item->title),
                         "where", JSON_ARRAY(i, item->n_places, place_object(d, &item->places[i])), "more", item->n_more,
                         "why", doc_text(words->why), "advice", doc_text(words->advice));
}

static json_t *subnet_manager(struct doc *d, uint32_t port, const struct probe_port *p)
{
        bool answered = probe_is_answered(&p->sm_info);

        return doc_port(d, port, "{s:o, s:o}", "state", doc_text(answered ? sm_state_to_string(p->sm.state) : NULL),
                        "priority", answered ? json_integer(p->sm.priority) : json_null());
}

static void json_doctor(struct doc *d, const void *result)
{
        const struct doctor_result *r = result;
        const struct diagnoses *all = &r->diagnoses;
        const struct probe_result *probe = r->facts->probe;

        for (uint32_t i = 0; i < all->n; i++)
                doc_append(d, json_object_get(d->root, "findings"), diagnosis_object(d, &all->items[i]));
        doc_add(d, d->root, "{s:i, s:i, s:i, s:o}", "errors", all->n_errors, "warnings", all->n_warnings, "notes", all->n_notes,
                "policy", doc_text(d->ctx->policy ? d->ctx->policy->file : NULL));
        if (r->facts->subnet)
                doc_add(d, d->root, "{s:i, s:i, s:o}", "nodes", d->ctx->subnet->n_nodes, "endports", d->ctx->subnet->n_by_port_guid,
                        "subnet_managers", JSON_ARRAY_IF(i, d->ctx->subnet->n_ports, probe->ports[i].sm_info.asked,
                                                         subnet_manager(d, (uint32_t) i, &probe->ports[i])));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

#define MAX_PLACES 8 /* without -v */
#define INDENT     8

/* A switch itself is "leaf07", not port 0 of it. */
static const char *place_text(struct context *ctx, const struct diagnosis_place *place)
{
        const struct subnet_port *p;
        const char *label;

        if (place->port == SUBNET_NONE)
                return place->text;
        p = &ctx->subnet->ports[place->port];
        label = p->role == PORT_ENDPORT && p->number == 0 ? output_node(ctx, place->port) : output_label(ctx, place->port);
        return *place->text ? output_format(ctx, "%s: %s", label, place->text) : label;
}

/* A paragraph that begins after the label, and is broken at blanks and, for lists, after commas. */
static void print_wrapped(const char *label, const char *text, unsigned width)
{
        unsigned column = INDENT, gap = 0;

        printf("  %-*s", INDENT - 2, label);
        while (*text) {
                unsigned n = (unsigned) strcspn(text, " ,");

                n += text[n] == ',';
                if (column > INDENT && column + gap + n > width) {
                        printf("\n%*s", INDENT, "");
                        column = INDENT;
                        gap = 0;
                }
                printf("%*s%.*s", (int) gap, "", (int) n, text);
                column += gap + n;
                text += n;
                gap = (unsigned) strspn(text, " ");
                text += gap;
        }
        putchar('\n');
}

static void print_places(struct context *ctx, const struct diagnosis *d, unsigned width)
{
        uint32_t shown = ctx->options->verbose ? d->n_places : MIN(d->n_places, MAX_PLACES);
        uint32_t more = d->n_more + d->n_places - shown;

        if (d->n_ports > 0) {
                print_wrapped("where", output_folded(ctx, d->ports, d->n_ports), width);
                return;
        }
        for (uint32_t i = 0; i < shown; i++)
                print_wrapped(i == 0 ? "where" : "", place_text(ctx, &d->places[i]), width);
        if (more > 0)
                printf("%*sand %u more%s\n", INDENT, "", more, shown < d->n_places ? " (-v shows them)" : "");
}

static void print_title(const struct diagnosis *d)
{
        const struct diagnosis_words *words = &diagnosis_words[d->code];
        bool color = findings_print_wants_color(stdout);

        printf("%s%s%s: %s [%s]\n", color ? findings_print_color(words->severity) : "", finding_severity_to_string(words->severity),
               color ? FINDINGS_PRINT_COLOR_OFF : "", d->title, words->code);
}

static void text_doctor(struct context *ctx, const void *result)
{
        const struct doctor_result *r = result;
        const struct diagnoses *all = &r->diagnoses;
        unsigned width = text_line_width();

        for (uint32_t i = 0; i < all->n; i++) {
                const struct diagnosis *d = &all->items[i];

                print_title(d);
                print_places(ctx, d, width);
                print_wrapped("why", diagnosis_words[d->code].why, width);
                print_wrapped("do", diagnosis_words[d->code].advice, width);
                putchar('\n');
        }
        if (ctx->status == EXIT_REFUSED)
                printf("this host only, because the fabric could not be read: ");
        else
                printf("%u nodes, %u endports: ", ctx->subnet->n_nodes, ctx->subnet->n_by_port_guid);
        if (all->n == 0)
                puts("nothing found");
        else
                printf("%u error%s, %u warning%s, %u note%s\n", all->n_errors, text_plural(all->n_errors),
                       all->n_warnings, text_plural(all->n_warnings), all->n_notes, text_plural(all->n_notes));
}

/* --- files of this host ---------------------------------------------------------------------------------------------- */

/* owner: who may own it besides root and the user of this process. */
static bool belongs_to_others(const struct stat *st, uid_t owner)
{
        return (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != owner) || (st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Whoever may write the directory can replace the file; in a sticky directory only its owner can. */
static bool is_replaceable(struct context *ctx, const char *path, uid_t owner)
{
        char *copy = arena_strdup(ctx->arena, path);
        struct stat st;

        return copy && stat(dirname(copy), &st) == 0 && !(st.st_mode & S_ISVTX) && belongs_to_others(&st, owner);
}

static struct doctor_file inspect_file(struct context *ctx, const char *path, uid_t owner)
{
        bool is_standard_input = strcmp(path, "-") == 0;
        struct stat st;

        if (is_standard_input || stat(path, &st) < 0)
                return (struct doctor_file) { .path = path, .exists = is_standard_input };
        return (struct doctor_file) {
                .path = path, .exists = true, .changeable = belongs_to_others(&st, owner) || is_replaceable(ctx, path, owner),
        };
}

/* Adds the findings of these severities to the lines: with a file, those about it, or those about anything else. Frozen ports are a
 * diagnosis of their own. */
static int add_findings(struct context *ctx, enum finding_severity least, enum finding_severity most, const char *file,
                        bool about_file, struct doctor_lines *lines)
{
        const char **items = arena_new_array(ctx->arena, const char *, lines->n + ctx->findings.n);
        uint32_t n = lines->n;

        if (!items)
                return -ENOMEM;
        if (n > 0)
                memcpy(items, lines->items, n * sizeof(*items));
        for (size_t i = 0; i < ctx->findings.n; i++) {
                const struct finding *f = &ctx->findings.items[i];
                bool is_about_file = file && f->where.file && strcmp(f->where.file, file) == 0;

                if (f->severity < least || f->severity > most || is_about_file != about_file || f->code == FINDING_PORT_FROZEN)
                        continue;
                items[n] = arena_printf(ctx->arena, "%s%s", location_format(ctx->arena, &f->where) ?: "", f->text);
                if (!items[n++])
                        return -ENOMEM;
        }
        *lines = (struct doctor_lines) { items, n };
        return 0;
}

/* Findings that became facts are not reported a second time. */
static int forget_findings(struct context *ctx)
{
        bool lost = ctx->findings.out_of_memory;

        findings_done(&ctx->findings);
        ctx->findings = (struct findings) { .arena = ctx->arena };
        return lost ? -ENOMEM : 0;
}

/* Moves all findings of these severities to the lines, and drops the others. */
static int move_findings(struct context *ctx, enum finding_severity least, enum finding_severity most, struct doctor_lines *lines)
{
        return add_findings(ctx, least, most, NULL, false, lines) ?: forget_findings(ctx);
}

static int read_files(struct context *ctx, struct doctor_host *host)
{
        const char *settings = ctx->options->config ?: ctx->fabric.config_file;
        int r = pipeline_read_files(ctx, NEED_SETTINGS | NEED_POLICY_IF_ANY | TAKES_POLICY);

        if (r < 0 && r != -EBADMSG)
                return r;
        host->settings_file = inspect_file(ctx, settings, 0);
        host->policy_file = inspect_file(ctx, ctx->arguments[0] ?: ctx->options->policy ?: ctx->fabric.policy_file, 0);
        return add_findings(ctx, FINDING_ERROR, FINDING_ERROR, settings, true, &host->settings_errors) ?:
               add_findings(ctx, FINDING_ERROR, FINDING_ERROR, settings, false, &host->policy_errors) ?:
               add_findings(ctx, FINDING_WARNING, FINDING_WARNING, settings, false, &host->policy_warnings) ?:
               forget_findings(ctx);
}

/* Returns whether a property of a unit, LoadCredential or LoadCredentialEncrypted, lists a credential of this name. */
static bool lists_credential(sd_bus *bus, const char *unit, const char *property, const char *name)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        const char *id, *source;

        if (sd_bus_get_property(bus, "org.freedesktop.systemd1", unit, "org.freedesktop.systemd1.Service", property, NULL, &reply,
                                "a(ss)") < 0 ||
            sd_bus_message_enter_container(reply, 'a', "(ss)") < 0)
                return false;
        while (sd_bus_message_read(reply, "(ss)", &id, &source) > 0)
                if (strcmp(id, name) == 0)
                        return true;
        return false;
}

/* The path of a key file; NULL if the service gets the key as a credential, which needs systemd, and so does not read the file. */
static const char *unless_credential(const struct context *ctx, const char *path, const char *name)
{
        _cleanup_bus_ sd_bus *bus = NULL;
        _cleanup_free_ char *unit = NULL;
        const char *fabric = ctx->fabric.name;
        char service[sizeof("pkeyd@.service") + FABRIC_NAME_MAX];

        (void) snprintf(service, sizeof(service), "pkeyd%s%s.service", fabric ? "@" : "", fabric ?: "");
        if (!path || sd_bus_path_encode("/org/freedesktop/systemd1/unit", service, &unit) < 0 || sd_bus_open_system(&bus) < 0 ||
            sd_bus_set_method_call_timeout(bus, USEC_PER_SEC) < 0)
                return path;
        return lists_credential(bus, unit, "LoadCredential", name) || lists_credential(bus, unit, "LoadCredentialEncrypted", name)
                       ? NULL : path;
}

/* The service does not run as root: what root can read here, pkeyd may not be able to read. */
static int inspect_readability(struct context *ctx, struct doctor_host *host)
{
        const struct settings *s = ctx->settings;
        const char *const paths[] = {
                host->settings_file.exists ? host->settings_file.path : NULL,
                host->policy_file.exists ? host->policy_file.path : NULL,
                unless_credential(ctx, s->m_key_file, "m_key"), unless_credential(ctx, s->sa_key_file, "sa_key"), s->opensm_config,
        };
        const char **lines = arena_new_array(ctx->arena, const char *, ELEMENTS(paths));
        uint32_t n = 0;

        if (!lines)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTS(paths); i++) {
                int r = paths[i] && strcmp(paths[i], "-") != 0 ? user_may_read(USER_PKEYD, paths[i]) : 0;

                if (r != -EACCES)
                        continue;
                lines[n] = arena_printf(ctx->arena, "%s: %s", paths[i], strerror(-r));
                if (!lines[n++])
                        return -ENOMEM;
        }
        host->unreadable = (struct doctor_lines) { lines, n };
        return 0;
}

/* Whether the keys can be read; they themselves are forgotten at once. */
static int inspect_secrets(struct context *ctx, struct doctor_host *host)
{
        struct m_keys *m_keys = NULL;
        uint64_t sm_key = 0;
        int r = secret_read_m_keys(ctx->settings, &ctx->findings, &m_keys);

        (void) m_keys_free(m_keys);
        if (r == 0 || r == -EBADMSG)
                r = secret_read_sm_key(ctx->settings, &ctx->findings, &sm_key);
        explicit_bzero(&sm_key, sizeof(sm_key));
        return r < 0 && r != -EBADMSG ? r : move_findings(ctx, FINDING_ERROR, FINDING_ERROR, &host->secret_errors);
}

/* Makes neither the directory nor a database, and does not lock the fabric. *ret owned, NULL without a store. */
static int inspect_state(struct context *ctx, struct doctor_host *host, struct knowledge **ret)
{
        const char *path = ctx->options->state_dir ?: ctx->fabric.state_dir;
        struct remembered *m = NULL;
        struct state_report report;
        struct etcd_config *etcd;
        struct state state;
        int r;

        host->state_dir = inspect_file(ctx, path, user_find_uid(USER_PKEYD)); /* that of the service belongs to its user */
        if (!host->state_dir.exists)
                return 0;
        r = session_find_etcd(ctx, &etcd);
        if (r < 0)
                return r == -EBADMSG ? move_findings(ctx, FINDING_ERROR, FINDING_ERROR, &host->secret_errors) : r;
        r = state_open(&state, path, STATE_READ, etcd);
        if (r != -ENOMEM)
                r = state_load(&state, &m);
        if (m)
                *ret = STEAL(m->knowledge);
        (void) remembered_free(m);
        if (access(path, W_OK) < 0)
                host->state_dir.error = arena_strdup(ctx->arena, strerror(errno));
        while (state_next_report(&state, &report))
                if (report.kind == STATE_UNUSABLE && state.error != -ENOTRECOVERABLE)
                        host->state_dir.error = arena_strdup(ctx->arena, report.text);
                else if (report.kind != STATE_USABLE)
                        host->state_damaged = true;
        state_close(&state);
        return r;
}

/* Reads it as OpenSM does. */
static int read_partitions_conf(struct context *ctx, const char *path, struct doctor_opensm *ret)
{
        const char *ours = settings_opensm_file(ctx->settings), *bytes;
        struct partitions_conf *conf = NULL;
        size_t n;
        int r = file_read_found(ctx->arena, path, PARTITIONS_CONF_MAX_SIZE, &ctx->findings, &bytes, &n);

        if (r >= 0) {
                enum partitions_file_owner owner = partitions_file_recognize(bytes, n, ctx->fabric.name, NULL);

                ret->is_edited = owner == PARTITIONS_FILE_EDITED;
                /* pkeyd replaces an empty file */
                ret->is_foreign = (owner == PARTITIONS_FILE_FOREIGN || owner == PARTITIONS_FILE_OTHER) && n > 0 && ours &&
                                  strcmp(path, ours) == 0;
                r = partitions_conf_parse(ctx->arena, pipeline_opensm_numbers(ctx), path, bytes, n, &ctx->findings, &conf);
        }
        ret->discarded = conf && conf->discarded;
        return r;
}

/* OpenSM's own files, if they are on this host. */
static int inspect_opensm(struct context *ctx, struct doctor_host *host)
{
        struct doctor_opensm *o = &host->opensm;
        const char *conf_path = ctx->options->opensm_config ?: ctx->settings->opensm_config ?: DEFAULT_OPENSM_CONF, *path;
        const char *ours = settings_opensm_file(ctx->settings);
        struct opensm_conf conf;
        int r = pipeline_read_opensm_conf(ctx, conf_path, &conf);

        if (r < 0 && r != -EBADMSG)
                return r;
        path = ours ?: OPENSM_PARTITIONS_CONF;
        if (r == 0 && (conf.partition_config_file || access(conf_path, F_OK) == 0)) {
                path = opensm_conf_partition_file(&conf, NULL);
                o->instead_of = ours && !opensm_conf_is_same_file(ours, path) ? ours : NULL;
        }
        o->path = o->instead_of ? path : NULL;
        if (r == 0 && access(path, F_OK) == 0) {
                o->path = path;
                r = read_partitions_conf(ctx, path, o);
                if (r < 0 && r != -EBADMSG)
                        return r;
        }
        r = move_findings(ctx, FINDING_WARNING, FINDING_ERROR, &o->odd);
        if (!o->path && o->odd.n > 0)
                o->path = conf_path;
        return r;
}

/* --- the fabric -------------------------------------------------------------------------------------------------- */

static int probe(struct context *ctx, struct doctor_facts *facts)
{
        struct probe_options options = {.m_keys = ctx->files->m_keys, .retries = PROBE_RETRIES};
        struct probe_result *result;
        struct mad_stage stage;
        struct probe *p;
        int r, sa = 0;

        r = session_use_gsi(ctx, &sa);
        if (r < 0)
                sa = r;
        options.ask_sa = sa == 0;
        if (sa < 0)
                facts->sa_error = arena_strdup(ctx->arena, strerror(-sa));
        r = probe_new(ctx->arena, ctx->subnet, &options, &p, &result);
        if (r < 0)
                return r;
        stage = probe_stage(p);
        r = session_run_stage(ctx, &stage, "querying ports");
        facts->probe = result;
        return r;
}

/* What the policy wants here; its errors in this fabric become diagnoses. Those of a policy in force do not refuse it. */
static int resolve(struct context *ctx, struct doctor_facts *facts)
{
        struct verification *v;
        int r, resolved;

        if (!ctx->policy)
                return 0;
        resolved = pipeline_resolve(ctx, true);
        if (resolved < 0 && resolved != -EBADMSG)
                return resolved;
        r = resolved == 0 ? 0 : add_findings(ctx, FINDING_ERROR, FINDING_ERROR, NULL, false, &facts->host.policy_errors);
        r = r ?: move_findings(ctx, FINDING_WARNING, resolved == 0 ? FINDING_ERROR : FINDING_WARNING, &facts->host.policy_warnings);
        if (r == 0 && resolved == 0) {
                r = verify_compare(ctx->arena, ctx->desired, ctx->observed, &ctx->plan_options, &v);
                facts->desired = ctx->desired;
                facts->verification = r == 0 ? v : NULL;
        }
        return r;
}

static int inspect_kernel(struct context *ctx, struct doctor_host *host)
{
        _cleanup_verbs_host_ struct verbs_host *h = NULL;
        int r = verbs_host_new(NULL, NULL, NULL, &h) ?: verbs_host_scan(h);

        if (r == -ENOMEM)
                return r;
        if (r == -EACCES || r == -EPERM)
                host->verbs_error = "permission denied for /dev/infiniband/uverbs*";
        else if (r < 0)
                host->verbs_error = "there are no RDMA verbs on this host, or no device that libibverbs knows";
        else if (verbs_host_find(h, ctx->subnet->ports[ctx->subnet->self].guid) == (size_t) -1)
                host->verbs_error = "libibverbs does not know the port";
        return 0;
}

static int read_fabric(struct context *ctx, struct doctor_facts *facts)
{
        int r = session_sweep(ctx, CONTROL_READ, NULL);

        if (r == 0)
                r = forget_findings(ctx); /* warnings of the store: inspect_state() has read it */
        r = r ?: probe(ctx, facts) ?: resolve(ctx, facts) ?: inspect_kernel(ctx, &facts->host);
        if (r < 0)
                return r;
        facts->subnet = ctx->subnet;
        facts->observed = ctx->observed;
        return 0;
}

int command_doctor(struct context *ctx)
{
        static const struct printer printer = { text_doctor, json_doctor, OK_IF_DONE | QUIET };
        struct doctor_facts facts = {};
        struct doctor_result result = { .facts = &facts };
        struct diagnoses *diagnoses = &result.diagnoses;
        _cleanup_(knowledge_free_p) struct knowledge *knowledge = NULL;
        int r = read_files(ctx, &facts.host) ?: inspect_readability(ctx, &facts.host) ?: inspect_secrets(ctx, &facts.host) ?:
                inspect_state(ctx, &facts.host, &knowledge) ?: inspect_opensm(ctx, &facts.host);

        if (r < 0)
                return r;
        facts.settings = ctx->settings;
        r = read_fabric(ctx, &facts);
        if (r < 0 && r != -EBADMSG)
                return r;
        facts.host.state_of_other_fabric = knowledge && facts.subnet && knowledge_is_of_other_fabric(knowledge, facts.subnet);
        return doctor_diagnose(ctx->arena, &facts, diagnoses) ?:
               output(ctx, &printer, !facts.subnet ? EXIT_REFUSED : diagnoses->n > 0 ? EXIT_DIFFERENCE : EXIT_DONE, &result);
}
