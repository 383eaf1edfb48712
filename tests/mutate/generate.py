# SPDX-License-Identifier: GPL-2.0-or-later
"""Generates wrongs from the text of a C file, and takes a random sample of them. Pure: it reads no files.

A tokenizer and a reader of statements instead of a parser: a wrong changes text, and the compiler rejects those that are not
C, or that swap arguments of different types (Wrong.guard). Comments, strings, characters, preprocessor lines, asserts and
debug messages are never changed, nor is anything outside of functions. Calls that only free memory are not deleted, because
only the sanitizers would notice.
"""

import hashlib
import re
from collections import Counter, namedtuple

# start, end: the place of `old` in its file. guard: an expression that compiles only if the wrong counts.
Wrong = namedtuple("Wrong", "path line function kind start end old new guard")
Token = namedtuple("Token", "kind text start end")

TOKEN = re.compile(r"""
    (?P<skip>    \s+ | /\*.*?\*/ | //[^\n]* | \\\n )
  | (?P<string>  (?:u8|[uUL])?"(?:\\.|[^"\\])*" )
  | (?P<char>    [uUL]?'(?:\\.|[^'\\])*' )
  | (?P<number>  \.?\d(?:[eEpP][+-]|[\w.])* )
  | (?P<word>    [A-Za-z_]\w* )
  | (?P<mark>    \.\.\. | <<= | >>= | -> | \+\+ | -- | << | >> | <= | >= | == | != | && | \|\| | [-+*/%&|^]= | . )
""", re.X | re.S)
# With continuation lines, and with a comment that begins on it.
DIRECTIVE = re.compile(r"\#(?:/\*.*?\*/|//(?:\\\n|[^\n])*|\\\n|\"(?:\\.|[^\"\\\n])*\"|[^\n])*", re.S)

OPENING = {"(": ")", "[": "]", "{": "}"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
# The change of the right side in the direction that the other operator does not cover: `a < n` is `a <= n - 1`.
BOUNDS = {"<": "- 1", ">=": "- 1", "<=": "+ 1", ">": "+ 1"}
CONTROL = {"if", "else", "while", "for", "do", "switch", "case", "default", "return", "goto", "break", "continue"}
TYPES = {"const", "static", "struct", "enum", "union", "unsigned", "signed", "int", "char", "long", "short", "bool", "void",
         "float", "double", "volatile", "register", "extern", "typedef", "_Static_assert", "static_assert", "auto"}
# The tokens at the ends of an operand of ||; of &&; of a condition before `?`.
ENDS = {",", ";", "?", ":", "(", "[", "{", "}", ")", "]"} | ASSIGNMENTS | CONTROL
OPERAND_ENDS = {"||": ENDS | {"||"}, "&&": ENDS | {"||", "&&"}}
# Their arguments are not changed.
UNTOUCHED = re.compile(r"^(assert|static_assert|_Static_assert|log_debug|sizeof|__\w+)$")
GIVES_BACK = re.compile(r"^(free|\w+_free|\w+_unref) \(")
ERROR = re.compile(r"^- E[A-Z0-9]+$")
INTEGER = re.compile(r"^(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)([uUlL]*)$")


class Unreadable(Exception):
    """Brackets that do not match, for example because branches of #if open one each: the function is left out."""


def tokenize(text):
    """The tokens without comments; each preprocessor directive is one token."""
    tokens = []
    at, line_begins = 0, True
    while at < len(text):
        if line_begins and text[at] == "#":
            m = DIRECTIVE.match(text, at)
            kind = "directive"
        else:
            m = TOKEN.match(text, at)
            kind = m.lastgroup
        if kind == "skip":
            line_begins = line_begins or "\n" in m.group()
        else:
            tokens.append(Token(kind, m.group(), at, m.end()))
            line_begins = False
        at = m.end()
    return tokens


def match_brackets(tokens):
    """The index of the matching bracket, for each bracket."""
    other, opened = {}, []
    for i, t in enumerate(tokens):
        if t.kind != "mark":
            continue
        if t.text in OPENING:
            opened.append(i)
        elif t.text in OPENING.values():
            if not opened or OPENING[tokens[opened[-1]].text] != t.text:
                raise Unreadable("bracket at %d" % t.start)
            other[i] = opened.pop()
            other[other[i]] = i
    if opened:
        raise Unreadable("bracket at %d" % tokens[opened[-1]].start)
    return other


def functions(tokens, other):
    """(name, words before the name, index of the `{`) of each function that has a body."""
    found = []
    i = begin = 0
    while i < len(tokens):
        t = tokens[i]
        if t.text == "{" and tokens[i - 1].text == ")":
            name = other[i - 1] - 1
            found.append((tokens[name].text, {x.text for x in tokens[begin:name]}, i))
        if t.text in OPENING and t.kind == "mark":
            i = other[i]
        if t.kind == "directive" or t.text in (";", "}"):
            begin = i + 1
        i += 1
    return found


class Body:
    """The wrongs of one function. Positions are indexes of tokens; a span is [first, end)."""

    def __init__(self, path, text, tokens, other, function):
        self.path, self.text, self.tokens, self.other = path, text, tokens, other
        self.name, self.head, self.open = function
        self.close = other[self.open]
        self.wrongs = []
        self.untouched = set()
        self.statements = []  # (kind, first, end) of the statements that statement() has read
        self.ifs = []         # (first, condition, body, end) of those without else
        self.conditions = []  # spans

    # --- reading ---

    def is_mark(self, i, *texts):
        return self.tokens[i].kind == "mark" and self.tokens[i].text in texts

    def word(self, i):
        return self.tokens[i].text if self.tokens[i].kind == "word" else None

    def behind(self, i, *texts):
        """The index after the next of these marks outside of brackets."""
        while not self.is_mark(i, *texts):
            i = self.other[i] if self.is_mark(i, *OPENING) else i
            i += 1
            if i >= self.close:
                raise Unreadable(self.name)
        return i + 1

    def statement(self, i):
        """Reads the statement at this index, with nested statements; returns the index after it."""
        t, word = self.tokens[i], self.word(i)
        if t.kind == "directive" or self.is_mark(i, ";"):
            return i + 1
        if self.is_mark(i, "{"):
            return self.block(i)
        if word == "if":
            return self.if_statement(i)
        if word in ("while", "switch"):
            if word == "while":
                self.conditions.append((i + 2, self.other[i + 1]))
            return self.statement(self.other[i + 1] + 1)
        if word == "for":
            return self.for_statement(i)
        if word == "do":
            i = self.statement(i + 1)
            self.conditions.append((i + 2, self.other[i + 1]))
            return self.behind(i, ";")
        if word in ("case", "default"):
            return self.behind(i, ":")
        if word and self.is_mark(i + 1, ":"):
            return i + 2
        return self.simple_statement(i, word)

    def block(self, i):
        end = self.other[i]
        i += 1
        while i < end:
            i = self.statement(i)
        return end + 1

    def if_statement(self, i):
        condition = (i + 2, self.other[i + 1])
        self.conditions.append(condition)
        body = condition[1] + 1
        end = self.statement(body)
        if self.word(end) == "else":
            return self.statement(end + 1)
        self.ifs.append((i, condition, body, end))
        return end

    def for_statement(self, i):
        condition = self.behind(i + 2, ";")
        end = self.behind(condition, ";") - 1
        if condition < end:
            self.conditions.append((condition, end))
        return self.statement(self.other[i + 1] + 1)

    def simple_statement(self, i, word):
        if word and word not in CONTROL and self.is_mark(i + 1, "(") and self.is_mark(self.other[i + 1] + 1, "{"):
            return self.statement(self.other[i + 1] + 1)  # a macro that is a loop
        end = self.behind(i, ";")
        if word in CONTROL:
            kind = word
        else:
            kind = "declaration" if self.is_declaration(i) else "expression"
        self.statements.append((kind, i, end))
        return end

    def is_declaration(self, i):
        if self.word(i) is None:
            return False
        if self.word(i) in TYPES or self.word(i).startswith("__") or self.word(i + 1):
            return True
        if not self.is_mark(i + 1, "*"):
            return False
        while self.is_mark(i + 1, "*"):
            i += 1
        return self.word(i + 1) is not None and self.is_mark(i + 2, "=", ";", ",", "[")

    def is_literal(self, i):
        """The `{` of a compound literal or of a statement in an expression."""
        return self.is_mark(i, "{") and self.is_mark(i - 1, ")", "(")

    def operand_begins(self, i, ends):
        while True:
            before = i - 1
            if self.is_mark(before, ")", "]") or self.is_mark(before, "}") and self.is_literal(self.other[before]):
                before = self.other[before]
            elif self.tokens[before].text in ends:
                return i
            i = before

    def operand_ends(self, i, ends):
        while True:
            if self.is_mark(i, "(", "[") or self.is_literal(i):
                i = self.other[i]
            elif self.tokens[i].text in ends:
                return i
            i += 1

    def source(self, first, end):
        return self.text[self.tokens[first].start:self.tokens[end - 1].end]

    def plain(self, first, end):
        """Without comments and line ends."""
        return " ".join(t.text for t in self.tokens[first:end])

    # --- wrongs ---

    def add(self, kind, first, end, new, guard=None):
        if any(t.kind == "directive" or i in self.untouched
               for i, t in enumerate(self.tokens[first:end], first)) or first >= end:
            return
        start, stop = self.tokens[first].start, self.tokens[end - 1].end
        line = self.text.count("\n", 0, start) + 1
        self.wrongs.append(Wrong(self.path, line, self.name, kind, start, stop, self.text[start:stop], new, guard))

    def find(self):
        self.block(self.open)
        for i in range(self.open, self.close):
            if self.word(i) and UNTOUCHED.match(self.word(i)) and self.is_mark(i + 1, "("):
                self.untouched.update(range(i, self.other[i + 1] + 1))
        self.of_statements()
        self.of_conditions()
        self.of_tokens()
        return self.wrongs

    def of_statements(self):
        for kind, first, end in self.statements:
            if kind == "expression" and self.has_effect(first, end):
                self.add("delete", first, end, ";")
            elif kind in ("break", "continue"):
                self.add("jump", first, end, ";")
                self.add("jump", first, end, "continue;" if kind == "break" else "break;")
            elif kind == "return" and end - first > 2:
                self.of_return(first, end)
            elif kind == "declaration":
                self.keep_sizes(first, end)

    def has_effect(self, first, end):
        """A call or an assignment; none is `(void) name;`."""
        if self.plain(first, first + 3) == "( void )":
            first += 3
        if GIVES_BACK.match(self.plain(first, end)):
            return False
        return any(self.is_mark(i, "(", "++", "--", *ASSIGNMENTS) for i in range(first, end))

    def keep_sizes(self, first, end):
        """A declaration of an array, whose size is not changed, because no test would notice."""
        for i in range(first, end):
            if self.is_mark(i, "=", "(", "{"):
                break
            if self.is_mark(i, "["):
                self.untouched.update(range(i, self.other[i] + 1))

    def of_return(self, first, end):
        value = self.plain(first + 1, end - 1)
        if ERROR.match(value):
            self.add("no-error", first, end, "return 0;")
        elif value in ("true", "false", "NULL") or INTEGER.match(value):
            pass  # of_tokens()
        elif "bool" in self.head and "*" not in self.head:
            if not self.is_equality(first + 1, end - 1):
                self.add("return", first, end, "return !(%s);" % self.source(first + 1, end - 1))
        else:
            self.add("return", first, end, "return 0;")

    def is_equality(self, first, end):
        """The negation of a single comparison is the other operator, which of_tokens() generates."""
        ends = OPERAND_ENDS["&&"]
        for i in range(first, end):
            if self.is_mark(i, "==", "!="):
                return self.operand_begins(i, ends) == first and self.operand_ends(i, ends) == end
        return False

    def of_conditions(self):
        for first, end in self.conditions:
            self.negate(first, end)
        for first, condition, body, end in self.ifs:
            if self.is_error_path(condition, body, end):
                self.add("skip-error", first, end, "(void) (%s);" % self.source(*condition))

    def negate(self, first, end):
        if not self.is_equality(first, end):
            self.add("negate", first, end, "!(%s)" % self.source(first, end))

    def is_error_path(self, condition, body, end):
        """A branch that ends in `return -E...`, `return NULL` or a goto, or that returns the negative number it tests."""
        last = [(kind, i, e) for kind, i, e in self.statements if e == end - self.is_mark(body, "{") and i >= body]
        if not last:
            return False
        kind, first, stop = last[0]
        if kind == "goto":
            return True
        value = self.plain(first + 1, stop - 1)
        tested = self.plain(*condition)
        return kind == "return" and (value == "NULL" or bool(ERROR.match(value)) or tested == value or
                                     tested.endswith("< 0") and value in tested.split())

    def of_tokens(self):
        chains = set()
        for i in range(self.open + 1, self.close):
            t = self.tokens[i]
            if t.kind == "word" and t.text in ("true", "false"):
                self.add("bool", i, i + 1, "false" if t.text == "true" else "true")
            elif t.kind == "word" and self.is_mark(i + 1, "("):
                self.swap_arguments(i)
            elif t.kind == "number":
                self.off_by_one(i)
            elif t.kind != "mark":
                continue
            elif t.text == "?" and not self.is_mark(i + 1, ":"):
                self.negate(self.operand_begins(i, ENDS), i)
            elif t.text in ("&&", "||"):
                self.add("and-or", i, i + 1, "||" if t.text == "&&" else "&&")
                if i not in chains:
                    chains.update(self.drop_operands(i, t.text))
            elif t.text in COMPARISONS:
                self.add("compare", i, i + 1, COMPARISONS[t.text])
                if t.text in BOUNDS:
                    self.move_bound(i + 1, BOUNDS[t.text])

    def off_by_one(self, i):
        m = INTEGER.match(self.tokens[i].text)
        if not m:
            return
        digits, suffix = m.groups()
        is_hex = digits[:2] in ("0x", "0X")
        value = int(digits, 16 if is_hex else 8 if digits[0] == "0" else 10)
        for n in (value + 1, value - 1):
            if n >= 0:
                self.add("off-by-one", i, i + 1, ("0x%x" if is_hex else "%d") % n + suffix)

    def move_bound(self, i, change):
        """`i < n` to `i < n - 1`, if the right side is a name with members and indexes."""
        first = i
        if not self.word(i) or UNTOUCHED.match(self.word(i)):
            return
        i += 1
        while True:
            if self.is_mark(i, "(", "["):
                i = self.other[i] + 1
            elif self.is_mark(i, ".", "->"):
                i += 2
            else:
                break
        if self.is_mark(i, ")", ";", ",", "?", ":", "&&", "||"):
            self.add("off-by-one", first, i, "%s %s" % (self.source(first, i), change))

    def drop_operands(self, i, operator):
        """Each operand of a chain of one operator; returns its operators."""
        ends = OPERAND_ENDS[operator]
        operators, firsts = [], [self.operand_begins(i, ends)]
        while self.is_mark(i, operator):
            operators.append(i)
            firsts.append(i + 1)
            i = self.operand_ends(i + 1, ends)
        for first, behind in zip(firsts, operators):
            self.add("drop", first, behind + 1, "")
        self.add("drop", operators[-1], i, "")
        return operators

    def swap_arguments(self, i):
        name = self.word(i)
        if name in CONTROL or UNTOUCHED.match(name) or name.isupper() or self.is_mark(i - 1, ".", "->"):
            return
        end = self.other[i + 1]
        arguments, first = [], i + 2
        while first < end:
            stop = self.behind(first, ",", ")") - 1
            arguments.append((first, stop))
            first = stop + 1
        for k, a in enumerate(arguments):
            for b in arguments[k + 1:]:
                if self.may_be_of_one_type(a, b):
                    self.swap(i, a, b, end + 1)

    def may_be_of_one_type(self, a, b):
        """Whether two arguments can be swapped, by their tokens; neither is a string. The guard checks the types."""
        if any(t.kind == "string" for t in self.tokens[a[0]:a[1]] + self.tokens[b[0]:b[1]]):
            return False
        numbers = [self.tokens[x].kind in ("number", "char") and end == x + 1 for x, end in (a, b)]
        addresses = [self.is_mark(x, "&") for x, _ in (a, b)]
        return self.plain(*a) != self.plain(*b) and not (any(numbers) and any(addresses))

    def swap(self, i, a, b, end):
        """The whole call, so that the guard can enclose it."""
        at = [self.tokens[i].start, self.tokens[a[0]].start, self.tokens[a[1] - 1].end,
              self.tokens[b[0]].start, self.tokens[b[1] - 1].end, self.tokens[end - 1].end]
        part = [self.text[x:y] for x, y in zip(at, at[1:])]
        self.add("swap", i, end, part[0] + part[3] + part[2] + part[1] + part[4],
                 "__builtin_types_compatible_p(__typeof__(((void) 0, %s)), __typeof__(((void) 0, %s)))" %
                 (self.plain(*a), self.plain(*b)))


def generate(path, text):
    """All wrongs of a file, in the order of their places."""
    tokens = tokenize(text)
    try:
        other = match_brackets(tokens)
    except Unreadable:
        return []
    wrongs = []
    for function in functions(tokens, other):
        try:
            wrongs += Body(path, text, tokens, other, function).find()
        except (Unreadable, KeyError):
            continue
    return sorted(set(wrongs), key=lambda w: (w.start, w.end, w.kind, w.new))


def apply(text, wrong):
    """The file with the wrong. Lines keep their numbers, so that asserts after it compile to the same code."""
    new = wrong.new
    if wrong.guard:
        new = '({ _Static_assert(%s, "arguments of two types"); %s; })' % (wrong.guard, new)
    return text[:wrong.start] + new + "\n" * (wrong.old.count("\n") - new.count("\n")) + text[wrong.end:]


def sample(wrongs, sources, seed):
    """All wrongs in random order: the first N are the sample, and the next one replaces each that cannot be judged. The
    position of a wrong depends on the seed, the name of its function and the text of its line, not on line numbers or other
    functions, so a sample changes little when the sources change. sources: the text by path."""
    seen = Counter()
    ranked = []
    for w in sorted(wrongs, key=lambda w: (w.path, w.start, w.end, w.kind, w.new)):
        key = (w.path, w.function, w.kind, line_of(sources[w.path], w.start), w.old, w.new)
        seen[key] += 1
        ranked.append((hashlib.sha256(repr((seed, key, seen[key])).encode()).digest(), w))
    return [w for _, w in sorted(ranked, key=lambda r: r[0])]


def line_of(text, at):
    return text[text.rfind("\n", 0, at) + 1:(text + "\n").index("\n", at)].strip()
