/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/selector.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "util/nearest.h"
#include "util/scan.h"
#include "util/vector.h"

#define GUID_DIGITS 16

static const struct keyword {
        const char *word;
        enum selector_kind kind;
        enum specificity specificity;
        enum node_type type;
} keywords[] = {
        { "ALL", SELECTOR_ALL, SPECIFICITY_ALL, 0 },
        { "ALL_CAS", SELECTOR_TYPE, SPECIFICITY_TYPE, NODE_CA },
        { "ALL_SWITCHES", SELECTOR_TYPE, SPECIFICITY_TYPE, NODE_SWITCH },
        { "ALL_ROUTERS", SELECTOR_TYPE, SPECIFICITY_TYPE, NODE_ROUTER },
        { "SELF", SELECTOR_SELF, SPECIFICITY_GUID, 0 },
};

/* One selector of a list while it is parsed. */
struct element {
        const struct selector_reader *reader;
        const struct selector_source *source;
        size_t offset; /* in the text of the list */
        const char *text; /* a copy in the arena, without surrounding spaces */
        struct selector *selector;
};

static void report(const struct element *e, enum finding_severity severity, enum finding_code code, size_t offset, const char *text)
{
        struct place place = e->source->place;
        const char *path = e->source->path;

        if (e->source->verbatim)
                place.where.column += (unsigned) (e->offset + offset);
        report_add(e->reader->report, severity, code, &place, "%s%s%s%s%s", path ? path : "", path ? ": " : "",
                   report_quote(e->reader->report, e->text), strncmp(text, "is ", 3) == 0 ? " " : ": ", text);
}

/* Reports an error at this offset in e->text. hint: NULL: none. Returns -EBADMSG. */
static int refuse(const struct element *e, enum finding_code code, size_t offset, const char *text, const char *hint)
{
        report(e, FINDING_ERROR, code, offset, text);
        if (hint)
                report_hint(e->reader->report, "%s", hint);
        return -EBADMSG;
}

/* ---- GUIDs ---------------------------------------------------------------------------------------------------- */

static int parse_guid(const struct element *e, const char *text, size_t offset, struct guid *ret)
{
        size_t n = strlen(text), digits = strspn(text + 2, "0123456789abcdefABCDEF"), i = digits + 2;

        if (text[1] == 'X' || i < n || n == 2 || digits > GUID_DIGITS)
                return refuse(e, FINDING_POLICY_GUID, offset + (i < n ? i : 0),
                              "is not a GUID (expected 0x and up to 16 hex digits)",
                              i < n || digits <= GUID_DIGITS ? NULL :
                              report_text(e->reader->report, "it has %zu hex digits; if it is a GID, write its last 16 digits, "
                                          "which are the GUID", digits));
        ret->v = strtoull(text, NULL, 16);
        return ret->v ? 0 : refuse(e, FINDING_POLICY_GUID, offset, "is not a GUID: no port can have the GUID 0", NULL);
}

/* A GUID as other tools print it: 0002:c903:000e:0b72, or sixteen digits. */
static bool looks_like_guid(const char *text, char ret[GUID_DIGITS + 1])
{
        size_t n = 0;

        for (; *text; text++) {
                if (*text == ':')
                        continue;
                if (!isxdigit((unsigned char) *text) || n == GUID_DIGITS)
                        return false;
                ret[n++] = *text;
        }
        ret[n] = '\0';
        return n == GUID_DIGITS;
}

static int check_guid_without_prefix(const struct element *e)
{
        char digits[GUID_DIGITS + 1];

        if (!looks_like_guid(e->text, digits))
                return 0;
        return refuse(e, FINDING_POLICY_GUID, 0, "is a GUID without 0x, not a host name (expected 0x and up to 16 hex digits)",
                      report_text(e->reader->report, "write 0x%s", digits));
}

/* ---- hosts ---------------------------------------------------------------------------------------------------- */

/* Reads n bytes at `text`, a place in e->text. */
static int parse_host(const struct element *e, const char *text, size_t n, struct hostlist **ret)
{
        struct hostlist_error error = {};
        int r = hostlist_parse(e->reader->arena, text, n, &error, ret);
        const char *hint = error.hint;

        if (r != -EBADMSG)
                return r;
        if (!hint && strchr(e->text, '='))
                hint = "write SELECTOR: MEMBERSHIP; NAME=VALUE is OpenSM's partitions.conf, another format";
        else if (!hint && strchr(e->text, ' '))
                hint = "separate several selectors by commas";
        return refuse(e, FINDING_POLICY_HOSTLIST, (size_t) (text - e->text) + error.offset, error.text, hint);
}

/* Takes a decimal number, 1 to 254. */
static bool scan_port(struct scan *s, uint64_t *ret)
{
        return scan_number(s, 10, SELECTOR_MAX_PORT, ret) && *ret > 0;
}

static int parse_device_port(const struct element *e, const char *text)
{
        struct scan s = { text, text + strlen(text) };
        uint64_t port;

        if (!scan_port(&s, &port) || s.p < s.end)
                return refuse(e, FINDING_POLICY_SELECTOR, (size_t) (text - e->text),
                              "is not a port number (accepted: HOST/DEVICE/PORT with a PORT of 1 to 254)", NULL);
        e->selector->port = (uint8_t) port;
        return 0;
}

/* HOST/DEVICE or HOST/DEVICE/PORT */
static int parse_device(const struct element *e, const char *slash)
{
        const char *port = strchr(slash + 1, '/');
        size_t host_length = (size_t) (slash - e->text);
        char *host = arena_strndup(e->reader->arena, e->text, host_length);
        int r;

        if (!host)
                return -ENOMEM;
        if (selector_find_group(e->reader->policy, host) >= 0)
                return refuse(e, FINDING_POLICY_SELECTOR, 0, "is a group with a device (accepted before '/': a host or hostlist)",
                              "write HOSTLIST/DEVICE, as in node[1-4]/mlx5_0");
        e->selector->specificity = port ? SPECIFICITY_DEVICE_PORT : SPECIFICITY_DEVICE;
        r = parse_host(e, e->text, host_length, &e->selector->host) ?:
            parse_host(e, slash + 1, port ? (size_t) (port - slash) - 1 : strlen(slash + 1), &e->selector->device);
        return r == 0 && port ? parse_device_port(e, port + 1) : r;
}

/* ---- switches ------------------------------------------------------------------------------------------------- */

static int parse_port_range(const struct element *e, struct scan *s)
{
        size_t start = (size_t) (s->p - e->text);
        uint64_t first, last;
        bool valid = scan_port(s, &first);

        last = first;
        if (valid && scan_char(s, '-'))
                valid = scan_port(s, &last);
        if (!valid || (s->p < s->end && *s->p != ','))
                return refuse(e, FINDING_POLICY_SELECTOR, start,
                              "is not a list of ports (accepted: numbers of 1 to 254, as in @SWITCH/3 or @SWITCH/1-18,20)",
                              e->text[start] == '0' ? "port 0 is the switch itself: for that, write its name without '@'" : NULL);
        if (first > last)
                return refuse(e, FINDING_POLICY_SELECTOR, start, "is a range of ports that runs backwards",
                              report_text(e->reader->report, "write %" PRIu64 "-%" PRIu64, last, first));
        for (; first <= last; first++)
                e->selector->ports[first / 64] |= UINT64_C(1) << (first % 64);
        return 0;
}

static int parse_ports(const struct element *e, const char *text)
{
        struct scan s = { text, text + strlen(text) };
        int r;

        e->selector->has_ports = true;
        e->selector->specificity = SPECIFICITY_SWITCH_PORT;
        e->selector->ports_text = text;
        do
                r = parse_port_range(e, &s);
        while (r == 0 && scan_char(&s, ','));
        return r;
}

static int parse_board(const struct element *e, const char *text, size_t n)
{
        char *board = arena_strndup(e->reader->arena, text, n);

        if (!board)
                return -ENOMEM;
        e->selector->board = board;
        if (subnet_is_board(board))
                return 0;
        return refuse(e, FINDING_POLICY_SELECTOR, (size_t) (text - e->text),
                      "is not a board of a switch (accepted: @NAME:L20/U2 or @NAME:L20/U2/PORTS, for a switch whose "
                      "NodeDescription is MF0;NAME:MODEL/L20/U2)", NULL);
}

/* The slash before the ports. A board may contain slashes, too; a list of ports begins with a digit. */
static const char *find_ports(const char *name, const char *colon)
{
        const char *slash = colon ? strrchr(colon, '/') : strchr(name, '/');

        return slash && (!colon || isdigit((unsigned char) slash[1])) ? slash : NULL;
}

static int parse_switch(const struct element *e)
{
        const char *name = e->text + 1, *colon = name[strcspn(name, ":/")] == ':' ? strchr(name, ':') : NULL;
        const char *slash = find_ports(name, colon), *end = slash ? slash : name + strlen(name);
        size_t n = (size_t) ((colon ? colon : end) - name);
        char *copy = arena_strndup(e->reader->arena, name, n);
        int r;

        if (!copy)
                return -ENOMEM;
        e->selector->kind = SELECTOR_SWITCH;
        e->selector->specificity = SPECIFICITY_HOST;
        if (copy[0] == '0' && tolower(copy[1]) == 'x')
                r = parse_guid(e, colon ? name : copy, 1, &e->selector->guid);
        else
                r = parse_host(e, name, n, &e->selector->host);
        if (r == 0 && colon)
                r = parse_board(e, colon + 1, (size_t) (end - colon) - 1);
        return r == 0 && slash ? parse_ports(e, slash + 1) : r;
}

/* ---- words ---------------------------------------------------------------------------------------------------- */

int selector_find_group(const struct policy *p, const char *name)
{
        const struct policy_group *found = p ? FIND_SORTED(group, p->groups, p->n_groups, strcmp(group->name, name)) : NULL;

        return found ? (int) (found - p->groups) : -1;
}

/* NULL: it is not a keyword. */
static const struct keyword *find_keyword(const char *word)
{
        for (size_t i = 0; i < ELEMENTS(keywords); i++)
                if (strcmp(word, keywords[i].word) == 0)
                        return &keywords[i];
        return NULL;
}

bool selector_is_keyword(const char *word)
{
        return find_keyword(word);
}

/* The keyword that is the nearest to a text that begins as one; "": none is near. */
static const char *nearest_keyword(const char *text)
{
        struct nearest nearest;

        nearest_init(&nearest, text);
        for (size_t i = 0; i < ELEMENTS(keywords); i++)
                nearest_offer(&nearest, keywords[i].word);
        return nearest.best ?: "";
}

/* The keyword that was probably meant: in another case, as a prefix (OpenSM accepts A for ALL), or with one wrong letter. "": it is
 * not known which one, because the text only begins as a keyword. NULL: none. */
static const char *near_keyword(const char *text)
{
        size_t n = strlen(text);
        bool upper_case = n > 0 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == n;

        for (size_t i = 0; i < ELEMENTS(keywords); i++)
                if (strcasecmp(text, keywords[i].word) == 0)
                        return keywords[i].word;
        if (!upper_case)
                return strncasecmp(text, "ALL_", 4) == 0 ? nearest_keyword(text) : NULL;
        for (size_t i = 0; i < ELEMENTS(keywords); i++)
                if (strncmp(text, keywords[i].word, n) == 0 || edit_distance(text, keywords[i].word, 2) <= 1)
                        return keywords[i].word;
        return strncmp(text, "ALL", 3) == 0 ? nearest_keyword(text) : NULL;
}

static int check_near_keyword(const struct element *e)
{
        const char *near = near_keyword(e->text), *host = "for a host of this name, write its GUID";

        if (!near)
                return 0;
        return refuse(e, FINDING_POLICY_SELECTOR, 0, "is not a keyword (accepted: ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF)",
                      *near ? report_text(e->reader->report, "did you mean %s? %s", near, host) : host);
}

int selector_find_membership(const char *word)
{
        for (int m = MEMBERSHIP_NONE; m <= MEMBERSHIP_BOTH; m++)
                if (strcasecmp(word, membership_to_string((enum membership) m)) == 0)
                        return m;
        return -1;
}

static int check_membership_word(const struct element *e)
{
        if (selector_find_membership(e->text) < 0)
                return 0;
        return refuse(e, FINDING_POLICY_SELECTOR, 0, "is a membership where a selector is expected",
                      "write the selector first, as in node[1-4]: full");
}

static bool same_digits(const char *a, const char *b)
{
        for (;; a++, b++) {
                a += strcspn(a, "0123456789");
                b += strcspn(b, "0123456789");
                if (*a != *b)
                        return false;
                if (!*a)
                        return true;
        }
}

/* A word that differs from a group's name by a letter or two probably means that group. A hostlist does not: no group has such a
 * name. */
static void warn_near_group(const struct element *e)
{
        const struct policy *p = e->reader->policy;
        struct nearest nearest;

        nearest_init(&nearest, e->text);
        nearest.limit = strlen(e->text) < 4 ? 0 : MIN(nearest.limit, 2u);
        for (uint32_t i = 0; p && i < p->n_groups && !strpbrk(e->text, "*?["); i++)
                if (same_digits(e->text, p->groups[i].name))
                        nearest_offer(&nearest, p->groups[i].name);
        if (!nearest.best)
                return;
        report(e, FINDING_WARNING, FINDING_POLICY_GROUP_UNKNOWN, 0, "is not a group, so pkeyd reads it as a host name");
        report_hint(e->reader->report, "did you mean the group '%s'?", nearest.best);
}

static int parse_word(const struct element *e)
{
        const struct keyword *keyword = find_keyword(e->text);
        int group, r;

        if (keyword) {
                e->selector->kind = keyword->kind;
                e->selector->specificity = keyword->specificity;
                e->selector->type = keyword->type;
                return 0;
        }
        r = check_near_keyword(e) ?: check_membership_word(e) ?: check_guid_without_prefix(e);
        if (r < 0)
                return r;
        group = selector_find_group(e->reader->policy, e->text);
        if (group >= 0) {
                e->selector->kind = SELECTOR_GROUP;
                e->selector->specificity = SPECIFICITY_GROUP;
                e->selector->group = (uint32_t) group;
                return 0;
        }
        r = parse_host(e, e->text, strlen(e->text), &e->selector->host);
        if (r == 0)
                warn_near_group(e);
        return r;
}

static int parse_element(const struct element *e)
{
        const char *slash = strchr(e->text, '/');

        if (e->text[0] == '\0')
                return refuse(e, FINDING_POLICY_SELECTOR, 0,
                              "is not a selector (accepted: a host, a GUID, a group, @SWITCH/PORTS, ALL ...)",
                              strchr(e->source->text, ',') ? "remove the extra comma" : NULL);
        if (e->text[0] == '0' && tolower(e->text[1]) == 'x') {
                e->selector->kind = SELECTOR_GUID;
                e->selector->specificity = SPECIFICITY_GUID;
                return parse_guid(e, e->text, 0, &e->selector->guid);
        }
        if (e->text[0] == '@')
                return parse_switch(e);
        e->selector->kind = SELECTOR_HOST;
        e->selector->specificity = SPECIFICITY_HOST;
        return slash ? parse_device(e, slash) : parse_word(e);
}

/* ---- lists ---------------------------------------------------------------------------------------------------- */

/* Returns whether the text up to the next comma is a port or a range of ports. */
static bool continues_ports(const char *s)
{
        size_t lead = strspn(s, " "), n = strspn(s + lead, "0123456789-");

        s += lead + n;
        s += strspn(s, " ");
        return n > 0 && (*s == ',' || *s == '\0');
}

/* The length of the first selector in s: it ends at a comma that is neither in brackets nor between the ports of a switch. */
static size_t element_length(const char *s)
{
        bool brackets = false, is_switch, ports = false;
        size_t i = strspn(s, " ");

        is_switch = s[i] == '@';
        for (; s[i]; i++) {
                brackets = s[i] == '[' || (brackets && s[i] != ']');
                ports = ports || (is_switch && s[i] == '/');
                if (s[i] == ',' && !brackets && !(ports && continues_ports(s + i + 1)))
                        break;
        }
        return i;
}

/* A copy without spaces around it, and without spaces in a list of ports. *ret_lead: the number of spaces before it. */
static char *copy_element(struct arena *a, const char *s, size_t n, size_t *ret_lead)
{
        size_t lead = MIN(strspn(s, " "), n), used = 0;
        bool ports = false;
        char *copy;

        while (n > lead && s[n - 1] == ' ')
                n--;
        copy = arena_strndup(a, s + lead, n - lead);
        for (size_t i = 0; copy && copy[i]; i++) {
                ports = ports || (copy[0] == '@' && copy[i] == '/');
                if (!ports || copy[i] != ' ')
                        copy[used++] = copy[i];
        }
        if (copy)
                copy[used] = '\0';
        *ret_lead = lead;
        return copy;
}

static size_t count_elements(const char *s)
{
        size_t n = 1;

        for (s += element_length(s); *s; s += 1 + element_length(s + 1))
                n++;
        return n;
}

static int add_element(const struct selector_reader *r, const struct selector_source *source, size_t offset, size_t n,
                       struct selector **ret)
{
        size_t lead;
        const char *text = copy_element(r->arena, source->text + offset, n, &lead);
        struct element e = { r, source, offset + lead, text, arena_new_object(r->arena, struct selector) };

        if (!e.selector || !text)
                return -ENOMEM;
        e.selector->text = text;
        e.selector->place = source->place;
        if (source->verbatim)
                e.selector->place.where.column += (unsigned) e.offset;
        *ret = e.selector;
        return parse_element(&e);
}

int selector_parse_list(struct selector_reader *r, const struct selector_source *source, struct selector ***ret, uint32_t *ret_n)
{
        size_t n = count_elements(source->text), at = 0, length;
        struct selector **selectors;
        int result = 0, e;

        if (n > SELECTOR_MAX_ELEMENTS) {
                report_add(r->report, FINDING_ERROR, FINDING_POLICY_SELECTOR, &source->place,
                           "%s%s%zu selectors in one line (accepted: up to %d)", source->path ? source->path : "",
                           source->path ? ": " : "", n, SELECTOR_MAX_ELEMENTS);
                return -EBADMSG;
        }
        r->total += (uint32_t) n;
        if (r->total > SELECTOR_MAX_TOTAL) {
                report_add(r->report, FINDING_ERROR, FINDING_FILE_TOO_LARGE, &source->place,
                           "more than %d selectors in one file", SELECTOR_MAX_TOTAL);
                return -EBADMSG;
        }
        selectors = arena_new_array(r->arena, struct selector *, n);
        if (!selectors)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                length = element_length(source->text + at);
                e = add_element(r, source, at, length, &selectors[i]);
                if (e == -ENOMEM)
                        return e;
                result = e < 0 ? e : result;
                at += length + 1;
        }
        if (result < 0)
                return result;
        *ret = selectors;
        *ret_n = (uint32_t) n;
        return 0;
}

/* ---- all of a policy ----------------------------------------------------------------------------------------------- */

static int add_all(struct arena *a, struct selector *const *selectors, uint32_t n, struct selector_list *ret)
{
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++)
                r = VECTOR_ADD(a, ret->items, ret->n, ret->allocated, selectors[i]);
        return r;
}

int selector_list_all(struct arena *a, const struct policy *p, struct selector_list *ret)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < p->n_groups; i++)
                r = add_all(a, p->groups[i].selectors, p->groups[i].n_selectors, ret);
        for (uint32_t i = 0; r == 0 && i < p->n_pools; i++)
                r = add_all(a, p->pools[i].ports, p->pools[i].n_ports, ret);
        for (uint32_t i = 0; r == 0 && i < p->n_partitions; i++)
                for (uint32_t k = 0; r == 0 && k < p->partitions[i].n_rules; k++)
                        r = add_all(a, p->partitions[i].rules[k].selectors, p->partitions[i].rules[k].n_selectors, ret);
        return r;
}

/* ---- names and the normal form -------------------------------------------------------------------------------- */

const char *selector_name_problem(const char *name)
{
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char) name[i]) && !strchr("_-.", name[i]))
                        return "is not a name (accepted: letters, digits, '_', '-', '.')";
        if (n == 0 || n > HOSTLIST_MAX_LENGTH)
                return "is not a name (accepted: 1 to 64 characters)";
        if (!isalnum((unsigned char) name[0]))
                return "is not a name (accepted: a letter or digit first)";
        if (near_keyword(name))
                return "is not a name: it is one of the keywords ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS and SELF, or can be taken for one";
        if (name[0] == '0' && tolower(name[1]) == 'x')
                return "is not a name: P_Keys and GUIDs begin with 0x";
        if (selector_find_membership(name) >= 0)
                return "is not a name: full, limited, both and none are memberships";
        return NULL;
}

bool selector_names_host(const char *word)
{
        char digits[GUID_DIGITS + 1];

        return !selector_name_problem(word) && !looks_like_guid(word, digits);
}

void selector_print(struct text *t, const struct selector *s)
{
        switch (s->kind) {
        case SELECTOR_GUID:
                text_add(t, "0x%016" PRIx64, s->guid.v);
                return;
        case SELECTOR_SWITCH:
                if (s->host)
                        text_add(t, "@%s%s%s", s->host->text, s->board ? ":" : "", s->board ? s->board : "");
                else
                        text_add(t, "@0x%016" PRIx64, s->guid.v);
                if (s->has_ports)
                        text_add(t, "/%s", s->ports_text);
                return;
        case SELECTOR_ALL:
        case SELECTOR_TYPE:
        case SELECTOR_SELF:
        case SELECTOR_GROUP:
        case SELECTOR_HOST:
                text_add(t, "%s", s->text);
                return;
        }
}

void selector_report_ambiguous(struct report *r, const struct place *place, const char *partition,
                               const struct policy_rule *later, const struct policy_rule *earlier, const char *about)
{
        report_add(r, FINDING_ERROR, FINDING_POLICY_AMBIGUOUS, place,
                   "partitions.%s.members: %s (%s) and %s (%s) in %s:%u are equally specific and disagree about %s", partition,
                   report_quote(r, later->text), membership_to_string(later->membership), report_quote(r, earlier->text),
                   membership_to_string(earlier->membership), earlier->where.file, earlier->where.line, about);
        report_hint(r, "remove it from one of the two lines, or add a more specific line that decides");
}
