/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "opensm/partitions_conf_reader.h"
#include "util/vector.h"

/* ---- the buffer ------------------------------------------------------------------------------------------------ */

struct place partitions_conf_place(const struct reader *r, size_t position)
{
        position = MIN(position, sizeof(r->line) - 1);
        return (struct place) { .where = { r->conf->file, r->origin[position].line, r->origin[position].column },
                                .source_line = r->origin[position].line == r->line_number ? r->source_line : NULL };
}

void partitions_conf_warn(struct reader *r, size_t position, enum finding_code code, const char *format, ...)
{
        struct place place = partitions_conf_place(r, position);
        va_list ap;

        va_start(ap, format);
        report_vadd(&r->report, FINDING_WARNING, code, &place, format, ap);
        va_end(ap);
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n';
}

size_t partitions_conf_skip_blanks(const struct reader *r, size_t p)
{
        while (is_blank(r->line[p]))
                p++;
        return p;
}

size_t partitions_conf_cut(struct reader *r, size_t p, char c)
{
        char *at = strchr(r->line + p, c);

        if (!at)
                return NOWHERE;
        *at = '\0';
        return (size_t) (at - r->line);
}

static void cut_trailing_blanks(struct reader *r, size_t start)
{
        size_t q = start + strlen(r->line + start);

        while (q != start && (r->line[q] == '\0' || is_blank(r->line[q])))
                r->line[q--] = '\0';
}

size_t partitions_conf_read_token(struct reader *r, size_t p, struct token *ret)
{
        size_t name = partitions_conf_skip_blanks(r, p), length, value, end;
        size_t equals = partitions_conf_cut(r, name, '=');

        length = strlen(r->line + p) + 1;
        cut_trailing_blanks(r, name);
        *ret = (struct token) { .name = r->line + name, .at = name };
        if (equals == NOWHERE)
                return length;
        value = partitions_conf_skip_blanks(r, equals + 1);
        end = value + strlen(r->line + value);
        length += end - (equals + 1) + 1;
        cut_trailing_blanks(r, value);
        ret->value = r->line + value;
        ret->value_at = value;
        return length;
}

/* OpenSM compares as many characters as the file has: a prefix of `whole` is that word, and so is the empty word. */
static bool is_prefix(const char *word, const char *whole)
{
        return strncmp(word, whole, strlen(word)) == 0;
}

uint64_t partitions_conf_number(struct reader *r, size_t position, const char *text, const char **ret_end)
{
        uint64_t v = opensm_number(r->numbers, text, ret_end);

        if (r->numbers == OPENSM_NUMBERS_UNKNOWN && opensm_number_is_binary(text)) {
                struct place place = partitions_conf_place(r, position);

                report_add(&r->report, FINDING_ERROR, FINDING_OPENSM_NUMBER, &place,
                           "%s is 0x%" PRIx64 " for an OpenSM that was built with glibc 2.38 or later, and not a number for an "
                           "older build; it is not known which one reads this file", report_quote(&r->report, text), v);
                report_hint(&r->report, "write the number in hexadecimal, or import the file on the host of this OpenSM");
        }
        return v;
}

const char *partitions_conf_binary_hint(struct reader *r, const char *text)
{
        const char *end;

        if (!opensm_number_is_binary(text))
                return NULL;
        return report_text(&r->report, "this OpenSM was built with glibc before 2.38 and has no binary numbers: if 0x%" PRIx64
                           " is meant, write that", opensm_number(OPENSM_NUMBERS_C23, text, &end));
}

bool partitions_conf_was_written(struct reader *r, size_t p)
{
        if (p <= r->length)
                return true;
        if (p < r->written && p < sizeof(r->line) && r->line[partitions_conf_skip_blanks(r, p)] != '\0')
                partitions_conf_warn(r, p, FINDING_OPENSM_STALE, "OpenSM reads this text again after the end of line %u, which "
                                     "is shorter", r->line_number);
        return p < r->written && p < sizeof(r->line);
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

static const char *quote(struct reader *r, const char *text)
{
        return report_quote(&r->report, text);
}

static void check_word(struct reader *r, size_t at, const char *word, const char *whole)
{
        if (strcmp(word, whole) == 0)
                return;
        if (*word)
                partitions_conf_warn(r, at, FINDING_OPENSM_WORD, "OpenSM reads %s as %s: it accepts any prefix of a word",
                                     quote(r, word), whole);
        else
                partitions_conf_warn(r, at, FINDING_OPENSM_WORD, "OpenSM reads the empty word here as %s", whole);
}

/* ---- multicast flags ------------------------------------------------------------------------------------------- */

static void warn_value(struct reader *r, const struct token *t, const char *whole, const char *what)
{
        partitions_conf_warn(r, t->value ? t->value_at : t->at, FINDING_OPENSM_IPOIB, "%s: %s %s", whole,
                             t->value ? quote(r, t->value) : "no value", what);
}

/* Reads a number, which OpenSM does not check. Returns false if there is none. */
static bool read_value(struct reader *r, const struct token *t, const char *whole, uint32_t *ret)
{
        const char *end;

        if (!t->value) {
                if (t->at < r->hash)
                        warn_value(r, t, whole, "is given; OpenSM ignores it");
                return false;
        }
        *ret = (uint32_t) partitions_conf_number(r, t->value_at, t->value, &end);
        if (*end || end == t->value)
                warn_value(r, t, whole, "is not a number; OpenSM uses the digits at its beginning, or 0");
        return true;
}

static void read_scope(struct reader *r, const struct token *t, struct group_flags *flags)
{
        uint32_t v;

        if (!read_value(r, t, "scope", &v))
                return;
        if (v == 0 || v > MULTICAST_MAX_SCOPE)
                warn_value(r, t, "scope", "is not a scope; OpenSM ignores it");
        else
                flags->scopes |= (uint16_t) (1u << v);
}

/* OpenSM checks SL and FlowLabel, and ignores invalid ones. */
static void read_checked(struct reader *r, const struct token *t, const char *whole, uint32_t max, uint32_t *ret)
{
        const char *end = NULL;
        uint32_t v = t->value ? (uint32_t) partitions_conf_number(r, t->value_at, t->value, &end) : 0;

        if (!t->value && t->at > r->hash)
                return;
        if (!t->value || !*t->value || v > max || (*end && !isspace((unsigned char) *end)))
                warn_value(r, t, whole, "is not a valid value; OpenSM ignores it");
        else
                *ret = v;
}

/* Returns whether OpenSM takes the token for this flag. Warns if that is surprising. */
static bool check_flag(struct reader *r, const struct token *t, const char *whole)
{
        if (!is_prefix(t->name, whole))
                return false;
        if (t->value || t->at < r->hash)
                check_word(r, t->at, t->name, whole);
        if (t->value && t->at > r->hash)
                partitions_conf_warn(r, t->at, FINDING_OPENSM_STALE, "OpenSM reads %s here, in the comment after an mgid", whole);
        return true;
}

/* Reads a flag of a multicast group; tries the words in the order in which OpenSM compares them. Returns false if it is none. */
static bool read_flag(struct reader *r, const struct token *t, struct group_flags *flags)
{
        const struct {
                const char *word;
                uint32_t *value; /* NULL: the scope */
                uint32_t max;    /* 0: OpenSM takes any value */
        } known[] = {
                { "mtu", &flags->mtu, 0 }, { "rate", &flags->rate, 0 }, { "scope", NULL, 0 }, { "Q_Key", &flags->q_key, 0 },
                { "TClass", &flags->tclass, 0 }, { "sl", &flags->sl, MULTICAST_MAX_SL },
                { "FlowLabel", &flags->flow_label, MULTICAST_MAX_FLOW },
        };

        for (size_t i = 0; i < ELEMENTS(known); i++) {
                if (!check_flag(r, t, known[i].word))
                        continue;
                if (!known[i].value)
                        read_scope(r, t, flags);
                else if (known[i].max == 0)
                        (void) read_value(r, t, known[i].word, known[i].value);
                else
                        read_checked(r, t, known[i].word, known[i].max, known[i].value);
                return true;
        }
        return false;
}

/* Flags of multicast groups between p and the next NUL. Returns the distance from p to where OpenSM continues. */
static size_t read_flags(struct reader *r, size_t p, struct group_flags *flags)
{
        struct token token;
        size_t start = p, comma;

        do {
                if (p >= sizeof(r->line))
                        break;
                comma = partitions_conf_cut(r, p, ',');
                p += partitions_conf_read_token(r, p, &token);
                (void) read_flag(r, &token, flags);
        } while (comma != NOWHERE);
        return p - start;
}

/* Invalid codes are reported and replaced by the default: no port can join a group that has them. */
static struct multicast_parameters parameters_of(struct reader *r, size_t at, const struct group_flags *f)
{
        struct multicast_parameters p = multicast_ipoib_default();

        if (multicast_mtu_bytes((uint8_t) f->mtu) && f->mtu <= UINT8_MAX)
                p.mtu = (uint8_t) f->mtu;
        else
                partitions_conf_warn(r, at, FINDING_OPENSM_IPOIB, "mtu=%u is not the code of an MTU%s", f->mtu,
                                     multicast_mtu_code(f->mtu) ? " (it is a code, not bytes: 5 is 4096, 4 is 2048)" : "");
        if (f->rate <= UINT8_MAX && multicast_rate_text((uint8_t) f->rate))
                p.rate = (uint8_t) f->rate;
        else
                partitions_conf_warn(r, at, FINDING_OPENSM_IPOIB, "rate=%u is not the code of a rate", f->rate);
        p.sl = (uint8_t) f->sl;
        p.tclass = (uint8_t) f->tclass;
        p.flow_label = f->flow_label;
        p.scopes = f->scopes ?: p.scopes;
        p.q_key = f->q_key;
        return p;
}

static struct partitions_conf_partition *open_partition(const struct reader *r)
{
        return &r->conf->partitions[r->open.partition];
}

struct ipoib *partitions_conf_ipoib(struct reader *r)
{
        struct partitions_conf_partition *p = open_partition(r);

        if (!p->ipoib) {
                p->ipoib = arena_new_object(r->arena, struct ipoib);
                if (p->ipoib)
                        p->ipoib->broadcast = multicast_ipoib_default();
        }
        return p->ipoib;
}

int partitions_conf_add_broadcast(struct reader *r, const struct token *head)
{
        struct partitions_conf_partition *p = open_partition(r);
        struct multicast_parameters m;
        struct ipoib *ipoib;

        if (!r->open.ipoib)
                return 0;
        ipoib = partitions_conf_ipoib(r);
        if (!ipoib)
                return -ENOMEM;
        m = parameters_of(r, head->at, &r->open.flags);
        if (m.q_key == 0)
                m.q_key = MULTICAST_Q_KEY_IPOIB;
        if (p->has_broadcast && !multicast_equal(&m, &ipoib->broadcast))
                partitions_conf_warn(r, head->at, FINDING_OPENSM_IPOIB, "an earlier definition created the broadcast group; "
                                     "OpenSM ignores its parameters here");
        if (!p->has_broadcast)
                ipoib->broadcast = m;
        p->has_broadcast = true;
        return 0;
}

/* Why OpenSM does not create a group; NULL: it does. An IP group must have the mtu and rate of its partition. */
static const char *group_problem(const struct reader *r, const struct multicast_group *g, const struct group_flags *f)
{
        const struct partitions_conf_partition *p = open_partition(r);

        for (uint32_t i = 0; p->ipoib && i < p->ipoib->n_groups; i++)
                if (memcmp(&p->ipoib->groups[i].mgid, &g->mgid, sizeof(g->mgid)) == 0)
                        return "the group exists already";
        if (!mgid_is_ip(&g->mgid))
                return NULL;
        if (!mgid_fits_partition(&g->mgid, p->base))
                return "this is an IP group whose MGID contains another P_Key";
        if (f->mtu != r->open.flags.mtu || f->rate != r->open.flags.rate)
                return "this is an IP group whose mtu and rate are not those of the partition";
        return NULL;
}

/* True for the IPv4 broadcast group of a partition with ipoib, which many files name again. */
static bool is_broadcast(const struct reader *r, const struct mgid *mgid)
{
        static const uint8_t rest[10] = { [6] = 0xff, 0xff, 0xff, 0xff };

        return open_partition(r)->has_broadcast && mgid->raw[2] == 0x40 && mgid->raw[3] == 0x1b &&
               memcmp(mgid->raw + 6, rest, sizeof(rest)) == 0;
}

static int add_group(struct reader *r, const struct multicast_group *group)
{
        struct partitions_conf_partition *p = open_partition(r);
        struct ipoib *ipoib = partitions_conf_ipoib(r);

        if (!ipoib || VECTOR_GROW(r->arena, ipoib->groups, ipoib->n_groups, p->allocated_groups) < 0)
                return -ENOMEM;
        memcpy((void *) &ipoib->groups[ipoib->n_groups++], group, sizeof(*group));
        return 0;
}

int partitions_conf_read_group(struct reader *r, const struct token *t, size_t p, size_t *ret_end)
{
        struct group_flags flags = r->open.flags;
        struct multicast_group group;
        struct place place = { .where = { r->conf->file, r->line_number, r->column + (unsigned) t->at } };
        const char *problem;

        if (!t->value) {
                report_add(&r->report, FINDING_ERROR, FINDING_OPENSM_GROUP, &place,
                           "mgid without a value: OpenSM crashes here");
                return -EBADMSG;
        }
        *ret_end = p;
        if (mgid_parse(t->value, &group.mgid) < 0) {
                partitions_conf_warn(r, t->value_at, FINDING_OPENSM_GROUP, "%s is not a multicast GID: OpenSM creates no group, "
                                     "and continues after it", quote(r, t->value));
                return 0;
        }
        flags.tclass = 0;
        if (partitions_conf_was_written(r, p))
                *ret_end = p + read_flags(r, p, &flags);
        problem = group_problem(r, &group, &flags);
        if (problem) {
                partitions_conf_warn(r, t->value_at, FINDING_OPENSM_GROUP, "%s: OpenSM creates no group for this line", problem);
                return 0;
        }
        if (is_broadcast(r, &group.mgid))
                return 0;
        group.parameters = parameters_of(r, t->at, &flags);
        if (group.parameters.q_key == 0 && mgid_is_ip(&group.mgid))
                group.parameters.q_key = MULTICAST_Q_KEY_IPOIB;
        return add_group(r, &group);
}

/* ---- heads ----------------------------------------------------------------------------------------------------- */

/* The membership whose word begins like this, in OpenSM's order. */
static enum membership find_membership(const char *word)
{
        static const enum membership memberships[] = { MEMBERSHIP_FULL, MEMBERSHIP_BOTH, MEMBERSHIP_LIMITED };

        for (size_t i = 0; i < ELEMENTS(memberships); i++)
                if (is_prefix(word, membership_to_string(memberships[i])))
                        return memberships[i];
        return MEMBERSHIP_NONE;
}

static void read_defmember(struct reader *r, const struct token *t)
{
        enum membership m = t->value ? find_membership(t->value) : MEMBERSHIP_NONE;

        if (m == MEMBERSHIP_NONE) {
                partitions_conf_warn(r, t->at, FINDING_OPENSM_WORD, "defmember: %s is not a membership; OpenSM ignores it "
                                     "(accepted: full, limited, both)", t->value ? quote(r, t->value) : "nothing");
                return;
        }
        check_word(r, t->value_at, t->value, membership_to_string(m));
        r->open.membership = m;
}

void partitions_conf_add_flag(struct reader *r, const struct token *t)
{
        if (read_flag(r, t, &r->open.flags))
                return;
        if (is_prefix(t->name, "ipoib")) {
                check_word(r, t->at, t->name, "ipoib");
                r->open.ipoib = true;
        } else if (is_prefix(t->name, "defmember")) {
                check_word(r, t->at, t->name, "defmember");
                read_defmember(r, t);
        } else if (strcmp(t->name, "indx0") == 0)
                r->open.index0 = true;
        else
                partitions_conf_warn(r, t->at, FINDING_OPENSM_WORD, "%s is not a partition flag; OpenSM ignores it",
                                     quote(r, t->name));
}

/* Describes how the C library reads a number that is not hexadecimal. NULL: the number is hexadecimal. */
static const char *describe_notation(const struct reader *r, const char *text)
{
        if (r->numbers == OPENSM_NUMBERS_C23 && opensm_number_is_binary(text))
                return "binary, because this OpenSM was built with glibc 2.38 or later";
        while (isspace((unsigned char) *text))
                text++;
        if (*text == '-' || *text == '+')
                return "a signed number";
        if (text[0] == '0' && isdigit((unsigned char) text[1]))
                return "octal, because of the leading 0";
        return text[0] == '0' ? NULL : "decimal";
}

void partitions_conf_check_key(struct reader *r, size_t at, const char *text, uint64_t value)
{
        unsigned base = (unsigned) value & P_KEY_BASE_MASK;
        const char *notation = describe_notation(r, text);

        if (base == 0)
                partitions_conf_warn(r, at, FINDING_OPENSM_P_KEY, "%s is not the P_Key of a partition; OpenSM looks up the "
                                     "name, or assigns a P_Key", quote(r, text));
        else if (value > P_KEY_BASE_MASK)
                partitions_conf_warn(r, at, FINDING_OPENSM_P_KEY, "%s is cut to its low 15 bits: OpenSM reads it as 0x%04x",
                                     quote(r, text), base);
        else if (notation)
                partitions_conf_warn(r, at, FINDING_OPENSM_P_KEY, "%s is read as %s: 0x%04x", quote(r, text), notation, base);
}

void partitions_conf_check_definition(struct reader *r, const struct token *head, const char *name, bool generated,
                                      bool again)
{
        const struct partitions_conf_partition *p = open_partition(r);

        if (generated && (!name || !*name))
                partitions_conf_warn(r, head->at, FINDING_OPENSM_P_KEY, "a partition without name and P_Key: OpenSM assigns "
                                     "0x%04x, and another P_Key at each sweep", p->base);
        else if (generated)
                partitions_conf_warn(r, head->at, FINDING_OPENSM_P_KEY, "%s has no P_Key; OpenSM assigns 0x%04x%s",
                                     quote(r, name), p->base, strcasecmp(name, "default") == 0 ?
                                     " (the default partition is Default, with a capital D)" : "");
        else if (again && p->generated && head->value)
                partitions_conf_warn(r, head->at, FINDING_OPENSM_P_KEY, "0x%04x is the P_Key that OpenSM assigned to the "
                                     "partition of line %u: OpenSM merges the two partitions", p->base, p->where.line);
        else if (again && name && *name && p->where.line > 0 && strncmp(p->name, name, NAME_SIZE - 1) != 0)
                partitions_conf_warn(r, head->at, FINDING_OPENSM_P_KEY, "0x%04x is the P_Key of %s of line %u: OpenSM merges the two "
                                     "partitions", p->base, *p->name ? quote(r, p->name) : "the partition", p->where.line);
}

/* ---- members --------------------------------------------------------------------------------------------------- */

static enum membership read_membership(struct reader *r, const struct token *t)
{
        enum membership m;

        if (!t->value)
                return r->open.membership;
        m = find_membership(t->value);
        if (m == MEMBERSHIP_FULL || m == MEMBERSHIP_BOTH) {
                check_word(r, t->value_at, t->value, membership_to_string(m));
                return m;
        }
        if (m == MEMBERSHIP_NONE)
                partitions_conf_warn(r, t->value_at, FINDING_OPENSM_WORD, "%s is not a membership; OpenSM reads it as limited",
                                     quote(r, t->value));
        return MEMBERSHIP_LIMITED;
}

static bool read_keyword(struct reader *r, const struct token *t, struct partitions_conf_member *m)
{
        static const struct {
                const char *word;
                enum partitions_conf_who who;
                enum node_type type;
        } keywords[] = {
                { "ALL", PARTITIONS_CONF_ALL, 0 },
                { "ALL_CAS", PARTITIONS_CONF_TYPE, NODE_CA },
                { "ALL_SWITCHES", PARTITIONS_CONF_TYPE, NODE_SWITCH },
                { "ALL_ROUTERS", PARTITIONS_CONF_TYPE, NODE_ROUTER },
                { "SELF", PARTITIONS_CONF_SELF, 0 },
        };

        for (size_t i = 0; i < ELEMENTS(keywords); i++) {
                if (!is_prefix(t->name, keywords[i].word))
                        continue;
                check_word(r, t->at, t->name, keywords[i].word);
                m->who = keywords[i].who;
                m->type = keywords[i].type;
                return true;
        }
        return false;
}

static int read_guid(struct reader *r, const struct token *t, struct guid *ret)
{
        const char *end, *notation = describe_notation(r, t->name);

        errno = 0;
        ret->v = partitions_conf_number(r, t->at, t->name, &end);
        if (ret->v == 0 || *end)
                return -EINVAL;
        if (errno == ERANGE)
                notation = "the largest 64-bit number, because it has more than 64 bits";
        if (notation)
                partitions_conf_warn(r, t->at, FINDING_OPENSM_GUID, "%s is read as %s: 0x%016" PRIx64, quote(r, t->name), notation,
                                     ret->v);
        return 0;
}

int partitions_conf_add_member(struct reader *r, struct partitions_conf_member member)
{
        struct partitions_conf_partition *p = open_partition(r);
        struct partitions_conf_member *m = arena_new_object(r->arena, struct partitions_conf_member);

        if (!m)
                return -ENOMEM;
        *m = member;
        if (p->last)
                p->last->next = m;
        else
                p->members = m;
        p->last = m;
        p->n_members++;
        return 0;
}

int partitions_conf_read_member(struct reader *r, const struct token *t)
{
        struct partitions_conf_member m = { .who = PARTITIONS_CONF_GUID, .index0 = r->open.index0 };

        if (!*t->name)
                return 0;
        if (is_prefix(t->name, "NONE")) {
                if (strcmp(t->name, "NONE") != 0)
                        partitions_conf_warn(r, t->at, FINDING_OPENSM_WORD, "OpenSM reads %s as NONE: no port",
                                             quote(r, t->name));
                return 0;
        }
        m.membership = read_membership(r, t);
        if (!read_keyword(r, t, &m) && read_guid(r, t, &m.guid) < 0)
                return -EINVAL;
        m.where = partitions_conf_place(r, t->at).where;
        return partitions_conf_add_member(r, m);
}
