# SPDX-License-Identifier: GPL-2.0-or-later
"""The wrongs of the correction of one typing error."""

from wrongs import Wrong

TYPING = "src/policy/typing_error.c"
TREE = "src/util/yaml_tree.c"
PIPELINE = "src/session/pipeline.c"

WRONGS = [
    Wrong("typing-first-is-certain", TYPING, "s->differs = !yaml_tree_equal(s->tree, tree);", "s->differs = false;"),
    Wrong("typing-no-keywords", TYPING, 'selector_is_keyword(word) || ', ""),
    Wrong("typing-always-differs", TYPING, "s->differs = !yaml_tree_equal(s->tree, tree);", "s->differs = true;"),
    Wrong("typing-after-the-budget", TYPING, "s.arena && !is_over(&s) && is_possible", "s.arena && is_possible"),
    Wrong("typing-globs", TYPING, "!memchr(e->added, '\\n', e->n_added) &&\n               !memchr(e->added, '*', e->n_added)", "!memchr(e->added, '\\n', e->n_added)"),
    Wrong("typing-joins-lines", TYPING, "return e->at >= s->first_line && !memchr(s->bytes + e->at, '\\n', e->removed) && ", "return e->at >= s->first_line && "),
    Wrong("typing-ends-the-line-before", TYPING, "return e->at >= s->first_line && ", "return "),
    Wrong("typing-splits-lines", TYPING, " && !memchr(e->added, '\\n', e->n_added) &&", " &&"),
    Wrong("typing-last-edit", TYPING, "if (!s->arena || rank(s, e) < rank(s, &s->edit))", "if (true)"),
    Wrong("typing-first-edit", TYPING, "if (!s->arena || rank(s, e) < rank(s, &s->edit))", "if (!s->arena)"),
    Wrong("typing-one-digit-is-certain", TYPING, "@*.12k", "@*.1k"),
    Wrong("typing-no-swaps", TYPING, " ?: try_swap(s, at);", ";"),
    Wrong("typing-no-replacements", TYPING, "try_characters(s, at, 1) ?: ", ""),
    Wrong("typing-no-insertions", TYPING, "return r ?: try_characters(s, at, 0);", "return r;"),
    Wrong("typing-no-deletions", TYPING, "r = try_edit(s, &(struct edit) { .at = at, .removed = 1 });", ";"),
    Wrong("typing-no-words", TYPING, " || makes_word(s, at, removed, c);", ";"),
    Wrong("typing-comments-whole-lines", TYPING, "return from > 0 && s->bytes[from - 1] != '\\n';", "return true;"),
    Wrong("typing-comments-anywhere", TYPING, "if (at == 0 || s->bytes[at - 1] != ' ' || at + removed >= s->n || s->bytes[at + removed] != ' ')\n                return false;", ""),
    Wrong("typing-not-the-line-before", TYPING, "        do\n                from = line_before(s, from);\n        while (from > 0 && is_empty_line(s, from));\n", ""),
    Wrong("typing-not-the-line-feed", TYPING, "*ret_from = from - (from > 0);", "*ret_from = from;"),
    Wrong("typing-empty-line-before", TYPING, "while (from > 0 && is_empty_line(s, from));", "while (false);"),
    Wrong("typing-tries-comments", TYPING, "while (at < s->n && s->bytes[at] == '\\n' && is_empty_line(s, at + 1))", "while (false)"),
    Wrong("typing-also-memberships", TYPING, "case FINDING_POLICY_GUID:\n", "case FINDING_POLICY_GUID:\n        case FINDING_POLICY_MEMBERSHIP:\n"),
    Wrong("typing-also-ipoib", TYPING, "case FINDING_POLICY_GUID:\n", "case FINDING_POLICY_GUID:\n        case FINDING_POLICY_IPOIB:\n        case FINDING_VALUE_INVALID:\n"),
    Wrong("typing-ignores-the-mark", TYPING, "{ .file = file, .bytes = bytes + mark, .n = n - mark }", "{ .file = file, .bytes = bytes, .n = n }"),
    Wrong("typing-equal-keys", TREE, "(a->key && !same_text(a->key, b->key))", "false"),
    Wrong("typing-equal-lengths", TREE, "return !a && !b;", "return true;"),
    Wrong("typing-equal-values", TREE, "        if (a->kind == YAML_TREE_SCALAR)\n                return same_text(a, b);\n        for (a = a->children", "        for (a = a->children"),
    Wrong("typing-not-in-json", PIPELINE, "if (r == -EBADMSG && bytes && ctx->options->json)", "if (false)"),
]
