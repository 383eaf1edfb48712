# SPDX-License-Identifier: GPL-2.0-or-later
"""The generator of wrongs: the expected wrongs of small texts, none from comments and strings, the same sample for a seed."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import generate as g  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("mutate", os.path.join(HERE, "mutate"))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", LOADER))
LOADER.exec_module(mutate)

REAL = ("src/plan/plan.c", "src/apply/apply.c", "src/opensm_writer/opensm_writer.c", "src/policy/hostlist.c", "src/util/macros.h",
        "src/ib/smp.c")


def wrongs(body, head="int f(void)"):
    """(kind, old, new) of a function with this body."""
    return [(w.kind, w.old, w.new) for w in g.generate("a.c", "%s\n{\n%s\n}\n" % (head, body))]


class Kinds(unittest.TestCase):
    def exactly(self, body, *expected, head="int f(void)"):
        self.assertEqual(sorted(wrongs(body, head)), sorted(expected))

    def of_kind(self, kind, body, *expected, head="int f(void)"):
        found = [(old, new) for k, old, new in wrongs(body, head) if k == kind]
        self.assertEqual(sorted(found), sorted(expected))

    def test_delete(self):
        self.exactly("a();", ("delete", "a();", ";"))
        self.exactly("x->y = z;", ("delete", "x->y = z;", ";"))
        self.exactly("*n += m;", ("delete", "*n += m;", ";"))
        self.exactly("i++;", ("delete", "i++;", ";"))
        self.exactly("(void) a();", ("delete", "(void) a();", ";"))

    def test_delete_within_others(self):
        self.of_kind("delete", "for (;;) { if (x) a(); else b(); }", ("a();", ";"), ("b();", ";"))
        self.of_kind("delete", "switch (x) { case A: a(); break; default: b(); }", ("a();", ";"), ("b();", ";"))
        self.of_kind("delete", "do a(); while (x);", ("a();", ";"))
        self.of_kind("delete", "FOREACH(x, y) { a(); }", ("a();", ";"))
        self.of_kind("delete", "out:\na();", ("a();", ";"))

    def test_nothing_to_delete(self):
        for body in ("(void) x;", "int i = x;", "struct s *p = q;", "foo_t *p = q;", "_cleanup_free_ char *s = t;",
                     "uint8_t **p = q, *r;", "int (*call)(int) = q;", "__typeof__(x) y = x;", ";", "goto out;"):
            self.exactly(body)

    def test_giving_memory_back_is_for_sanitizers(self):
        self.exactly("free(p);")
        self.exactly("arena_free(p);")
        self.exactly("p = arena_free(p);", ("delete", "p = arena_free(p);", ";"))

    def test_negate(self):
        self.exactly("if (a) ;", ("negate", "a", "!(a)"))
        self.of_kind("negate", "while (a(x)) ;", ("a(x)", "!(a(x))"))
        self.of_kind("negate", "do ; while (a);", ("a", "!(a)"))
        self.of_kind("negate", "for (i = x; a[i]; i++) ;", ("a[i]", "!(a[i])"))
        self.of_kind("negate", "for (;;) ;")
        self.of_kind("negate", "x = a->b(c) & d ? e : f;", ("a->b(c) & d", "!(a->b(c) & d)"))
        self.of_kind("negate", "g(h, a ? e : f);", ("a", "!(a)"))
        self.of_kind("negate", "x = a ?: b;")

    def test_an_equality_is_negated_once(self):
        self.exactly("if (a == b) ;", ("compare", "==", "!="))
        self.of_kind("negate", "if (a == b && c) ;", ("a == b && c", "!(a == b && c)"))

    def test_compare(self):
        for old, new in g.COMPARISONS.items():
            self.of_kind("compare", "x = a %s b;" % old, (old, new))
        self.of_kind("compare", "a->b << c >> d;")

    def test_drop(self):
        self.of_kind("drop", "x = a(b) && c[d];", ("a(b) &&", ""), ("&& c[d]", ""))
        self.of_kind("drop", "if (a && b || c) ;", ("a &&", ""), ("&& b", ""), ("a && b ||", ""), ("|| c", ""))
        self.of_kind("drop", "return a || b || c;", ("a ||", ""), ("b ||", ""), ("|| c", ""))
        self.of_kind("drop", "x = y ? a && b : c;", ("a &&", ""), ("&& b", ""))
        self.of_kind("drop", "x = a && b((struct s) { 0 }, c);", ("a &&", ""), ("&& b((struct s) { 0 }, c)", ""))
        self.of_kind("drop", "x = (struct s) { a }.b && c;", ("(struct s) { a }.b &&", ""), ("&& c", ""))

    def test_and_or(self):
        self.of_kind("and-or", "x = a && b || c;", ("&&", "||"), ("||", "&&"))

    def test_off_by_one(self):
        self.of_kind("off-by-one", "x = 0;", ("0", "1"))
        self.of_kind("off-by-one", "x = i + 1;", ("1", "2"), ("1", "0"))
        self.of_kind("off-by-one", "x = 0xffu;", ("0xffu", "0x100u"), ("0xffu", "0xfeu"))
        self.of_kind("off-by-one", "x = 8UL;", ("8UL", "9UL"), ("8UL", "7UL"))
        self.of_kind("off-by-one", "x = 010;", ("010", "9"), ("010", "7"))
        self.of_kind("off-by-one", "x = 1.5;")

    def test_bounds(self):
        self.of_kind("off-by-one", "x = i < n;", ("n", "n - 1"))
        self.of_kind("off-by-one", "x = i <= a->n[j];", ("a->n[j]", "a->n[j] + 1"))
        self.of_kind("off-by-one", "x = i > f(n) && y;", ("f(n)", "f(n) + 1"))
        self.of_kind("off-by-one", "x = i >= n;", ("n", "n - 1"))
        self.of_kind("off-by-one", "x = i < n * m;")
        self.of_kind("off-by-one", "x = i == n;")

    def test_sizes_of_arrays_stay(self):
        self.of_kind("off-by-one", "char a[64];")
        self.of_kind("off-by-one", "char a[64] = { 1 };", ("1", "2"), ("1", "0"))

    def test_swap(self):
        self.of_kind("swap", "f(a, b);", ("f(a, b)", "f(b, a)"))
        self.of_kind("swap", "f(a, b, c);", ("f(a, b, c)", "f(b, a, c)"), ("f(a, b, c)", "f(c, b, a)"),
                     ("f(a, b, c)", "f(a, c, b)"))
        self.of_kind("swap", "f(a(1, x), b[c]);", ("f(a(1, x), b[c])", "f(b[c], a(1, x))"), ("a(1, x)", "a(x, 1)"))

    def test_no_swap(self):
        for body in ("f(a, a);", 'f(a, "b");', "f(&a, 0);", "MAX(a, b);", "s->f(a, b);", "if (a) ;", "return (a);"):
            self.of_kind("swap", body)

    def test_swap_asks_the_compiler_for_the_types(self):
        text = "int f(void)\n{\nreturn g(a, b);\n}\n"
        swap = [w for w in g.generate("a.c", text) if w.kind == "swap"][0]
        self.assertEqual(g.apply(text, swap), text.replace(
            "g(a, b)", "({ _Static_assert(__builtin_types_compatible_p(__typeof__(((void) 0, a)), "
            '__typeof__(((void) 0, b))), "arguments of two types"); g(b, a); })'))

    def test_skip_error(self):
        for condition, body in (("r < 0", "return r;"), ("r", "return r;"), ("!p", "return -ENOMEM;"), ("!p", "return NULL;"),
                                ("x", "{ a = b; return -EINVAL; }"), ("x", "goto out;"), ("(r = a()) < 0", "return r;")):
            old = "if (%s) %s" % (condition, body)
            self.of_kind("skip-error", old, (old, "(void) (%s);" % condition))

    def test_no_error_path(self):
        for body in ("if (x) return true;", "if (x) return y;", "if (r < 0) return r; else a();", "if (r < 0) a();",
                     "while (r < 0) return r;"):
            self.of_kind("skip-error", body)

    def test_return(self):
        self.exactly("return -EINVAL;", ("no-error", "return -EINVAL;", "return 0;"))
        self.exactly("return x;", ("return", "return x;", "return 0;"))
        self.exactly("return x;", ("return", "return x;", "return !(x);"), head="static bool f(void)")
        self.exactly("return x == y;", ("compare", "==", "!="), head="static bool f(void)")
        self.exactly("return 0;", ("off-by-one", "0", "1"))
        self.exactly("return;")

    def test_jump(self):
        self.of_kind("jump", "for (;;) { if (a) break; if (b) continue; }", ("break;", ";"), ("break;", "continue;"),
                     ("continue;", ";"), ("continue;", "break;"))

    def test_bool(self):
        self.exactly("return true;", ("bool", "true", "false"))
        self.exactly("bool x = false;", ("bool", "false", "true"))


class NeverChanged(unittest.TestCase):
    def nothing(self, body):
        self.assertEqual(wrongs(body), [])

    def test_comments(self):
        self.nothing("/* a(); if (x < 1) */ // b(); c = 2;\n")

    def test_strings_and_characters(self):
        self.nothing('const char *s = "a(); \\" x < 1; /* ", *t = L"2";\nchar c = \'<\', d = \'\\\'\';')

    def test_directives(self):
        self.nothing("#define X(a) \\\n        f(a < 1)\n#if 1 // x\n#endif /* y <\n 2 */\n")

    def test_asserts_and_debug_messages(self):
        self.nothing("assert(a < 1 && f(b, c));")
        self.nothing("static_assert(sizeof(int) == 4, \"x\");")
        self.nothing("log_debug(x < 1 ? a : b, true);")

    def test_what_is_outside_of_functions(self):
        self.assertEqual(g.generate("a.c", "static int a = 1;\nstruct s { int b[2]; };\nstatic int t[] = { 1, 2 };\n"
                                           "int f(int a[3]);\nenum e { A = 1 };\n"), [])

    def test_a_wrong_with_a_directive_in_it(self):
        self.assertEqual([w for w in wrongs("if (r)\n#ifdef X\n        return r;\n#endif\n") if w[0] == "skip-error"], [])

    def test_a_function_that_cannot_be_read(self):
        self.assertEqual(wrongs("#if X\nif (a) {\n#else\nif (b) {\n#endif\n}"), [])


class Places(unittest.TestCase):
    def test_line_and_function(self):
        w, = g.generate("a.c", "struct s;\n\nint g(void);\n\nstatic void f(int i)\n{\n\n        a();\n}\n")
        self.assertEqual((w.path, w.line, w.function), ("a.c", 8, "f"))

    def test_lines_keep_their_numbers(self):
        text = "void f(void)\n{\n        a(b,\n          c);\n        assert(d);\n}\n"
        for w in g.generate("a.c", text):
            self.assertEqual(g.apply(text, w).count("\n"), text.count("\n"), w)


class Samples(unittest.TestCase):
    TEXT = "int f(void)\n{\n        a(b, c);\n        return d < 1 && e;\n}\n\nint g(void)\n{\n        return h(1) ? 2 : 3;\n}\n"

    def sample(self, text, seed):
        return [(w.function, w.kind, w.old, w.new) for w in g.sample(g.generate("a.c", text), {"a.c": text}, seed)]

    def test_same_seed_same_sample(self):
        self.assertEqual(self.sample(self.TEXT, 1), self.sample(self.TEXT, 1))
        self.assertEqual(sorted(self.sample(self.TEXT, 1)), sorted(self.sample(self.TEXT, 2)))
        self.assertNotEqual(self.sample(self.TEXT, 1), self.sample(self.TEXT, 2))

    def test_an_edit_elsewhere_changes_no_order(self):
        edited = "/* new */\nint new(void)\n{\n        return a(7);\n}\n\n" + self.TEXT
        self.assertEqual([w for w in self.sample(edited, 1) if w[0] != "new"], self.sample(self.TEXT, 1))


class Measurements(unittest.TestCase):
    """The sample has the first n wrongs that count, independently of the copies and their speed."""

    SAMPLE = g.generate("src/a.c", "int f(void)\n{\n        return a + 1 < b - 2 && c[3] == 4;\n}\n")
    VERDICTS = ("caught", "equivalent", "SURVIVED", "does not compile", "equivalent")

    def judge(self, copy, wrong):
        k = self.SAMPLE.index(wrong)
        time.sleep(0.001 * (k * 7 % 5))
        verdict = self.VERDICTS[k % len(self.VERDICTS)]
        return verdict, "a test" if verdict == "caught" else None

    def measured(self, n, jobs):
        m = mutate.Measurement(self.SAMPLE, n, self.judge)
        with contextlib.redirect_stdout(io.StringIO()):
            m.work_in(range(jobs))
        return m

    def test_what_says_nothing_is_replaced(self):
        self.assertGreater(len(self.SAMPLE), 10)
        for jobs in (1, 3):
            m = self.measured(4, jobs)
            self.assertEqual(m.counted(), 4)
            self.assertEqual({self.SAMPLE.index(w) for w, v in m.verdicts if v in ("caught", "SURVIVED")}, {0, 2, 5, 7})

    def test_a_sample_may_run_out(self):
        m = self.measured(1000, 2)
        self.assertEqual(len(m.verdicts), len(self.SAMPLE))

    def test_a_judge_that_fails_ends_it(self):
        m = mutate.Measurement(self.SAMPLE, 4, lambda copy, wrong: 1 // 0)
        with self.assertRaises(ZeroDivisionError):
            m.work_in(range(2))

    def test_summary(self):
        m = self.measured(4, 1)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            percent = mutate.summary(m.verdicts, {"src/a.c": "int f(void)\n{\n        return a + 1 < b - 2 && c[3] == 4;\n}\n"})
        self.assertEqual(percent, 50)
        self.assertIn("src/a.c:3: f()", printed.getvalue())
        self.assertIn("50 % (2 of 4; 95 % range: 15 to 85 %)", printed.getvalue())
        self.assertIn("1 that do not compile (or swap arguments of two types), 3 that compile to the same code",
                      printed.getvalue())


class RealFiles(unittest.TestCase):
    def test_each_wrong_changes_the_tokens_and_keeps_brackets(self):
        for path in REAL:
            with open(os.path.join(SOURCE, path)) as f:
                text = f.read()
            tokens = [t.text for t in g.tokenize(text)]
            found = g.sample(g.generate(path, text), {path: text}, 1)
            self.assertGreater(len(found), 20, path)
            for w in found[:60]:
                self.assertEqual(text[w.start:w.end], w.old)
                changed = g.apply(text, w)
                after = g.tokenize(changed)
                self.assertNotEqual([t.text for t in after], tokens, w)
                g.match_brackets(after)  # skipped if the brackets do not match
                self.assertEqual(changed.count("\n"), text.count("\n"), w)


if __name__ == "__main__":
    unittest.main()
