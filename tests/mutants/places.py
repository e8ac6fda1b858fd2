"""Finds the places in a source that can be mutated, and their replacements, with libclang.

A place is a list of mutants; at most one of them is drawn. render.py describes a mutant. Left out are macros,
tables (.inc), constants that the compiler evaluates (constexpr variables, case labels, array bounds, template arguments),
default arguments, variables at namespace scope, and code that only a seeded defect reaches.
"""

import functools
import re
import subprocess

RELATIONAL = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-", 1, -1), "-": ("+", 1, -1), "*": ("+", "/", 1), "/": ("*", "%"), "%": ("/", "*"),
              "&": ("|",), "|": ("&",), "<<": (">>",), ">>": ("<<",)}
NAMES = {"<": "Less", "<=": "LessEqual", ">": "Greater", ">=": "GreaterEqual", "==": "Equal", "!=": "NotEqual",
         "+": "Add", "-": "Subtract", "*": "Multiply", "/": "Divide", "%": "Remainder", "&": "And", "|": "Or",
         "<<": "ShiftLeft", ">>": "ShiftRight"}
OURS = "fusebox_mutant::"

LITERAL = re.compile(rb"([01])([uUlLzZ]*)|([01])\.0?(f?)|true|false")
ONLY_WITH_A_DEFECT = re.compile(rb"[\w.>()-]*[dD]efects\w*(\.|->|\(\)\.)has\([\w:]*\)")
ASKS_FOR_A_DEFECT = re.compile(rb"\bDefect::k|[dD]efects\w*(\.|->|\(\)\.)has\(")
NAMES_A_DEFECT = re.compile(rb"\bbool (\w+) =[^;]*?[dD]efects\w*(?:\.|->|\(\)\.)has\(")
# Functions whose arguments can be exchanged.
SYMMETRIC = {"min", "max", "swap", "gcd", "lcm", "hypot", "equal", "__builtin_add_overflow", "__builtin_mul_overflow"}
JUMPS = {"RETURN_STMT", "BREAK_STMT", "CONTINUE_STMT", "CXX_THROW_EXPR", "GOTO_STMT"}
LOOPS = {"FOR_STMT", "WHILE_STMT", "DO_STMT", "CXX_FOR_RANGE_STMT"}
FUNCTIONS = {"FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION", "FUNCTION_TEMPLATE"}
CLASSES = {"STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE", "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION"}
SCOPES = CLASSES | {"NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL"}
INTEGERS = {"BOOL", "CHAR_U", "UCHAR", "CHAR16", "CHAR32", "USHORT", "UINT", "ULONG", "ULONGLONG", "UINT128", "CHAR_S", "SCHAR",
            "WCHAR", "SHORT", "INT", "LONG", "LONGLONG", "INT128", "ENUM"}
EXPRESSION_STATEMENTS = {"CALL_EXPR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNEXPOSED_EXPR", "BINARY_OPERATOR", "UNARY_OPERATOR"}


def operator(name):
    return OURS + NAMES[name]


@functools.cache
def system_folders(compiler):
    output = subprocess.run([compiler, "-E", "-v", "-xc++", "/dev/null"], capture_output=True, text=True, check=True).stderr
    return output.split("search starts here:\n")[-1].split("End of search")[0].split()


def compiler_arguments(command, stubs):
    """The arguments that libclang needs from a line of compile_commands.json, with the headers of that compiler.
    `stubs` holds empty headers for intrinsics that this compiler has and libclang lacks."""
    words = command.split()
    result = ["-xc++", "-std=c++20", "-nostdinc", "-nostdinc++", "-w", "-Wno-c++11-narrowing"]
    for i, word in enumerate(words):
        if word in ("-I", "-isystem", "-D"):
            result += [word, words[i + 1]]
        elif word.startswith(("-I", "-D")):
            result.append(word.replace('\\"', '"'))
    # Without these instructions, the headers need none of their types.
    result += ["-U__SSE__", "-U__SSE2__", "-isystem", str(stubs)]
    for folder in system_folders(words[0]):
        result += ["-isystem", folder]
    return result


class Finder:
    """Finds the places of one file, in a translation unit that contains it."""

    def __init__(self, unit, path, file, source):
        self.path, self.file, self.source = path, file, source
        self.places = []
        self.macros = []
        self.defects = set()  # local names that depend on a seeded defect
        roots = []
        for cursor in unit.cursor.get_children():
            where = cursor.location.file
            if where is None or where.name != path:
                continue
            if cursor.kind.name == "MACRO_INSTANTIATION":
                self.macros.append(self.range(cursor))
            elif not cursor.kind.name.startswith(("MACRO", "INCLUSION")):
                roots.append(cursor)
        for cursor in roots:
            self.declaration(cursor)
        # A place in a template occurs again in each full specialization.
        seen, unique = set(), []
        for place in self.places:
            key = (place[0]["start"], place[0]["end"], place[0]["kind"])
            if key not in seen:
                seen.add(key)
                unique.append(place)
        self.places = unique

    # -- ranges and texts

    @staticmethod
    def range(cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def text(self, start, end):
        return self.source[start:end]

    def is_in_macro(self, start, end):
        return any(a <= start and end <= b for a, b in self.macros)

    def is_mutable(self, cursor):
        start, end = self.range(cursor)
        return start < end and cursor.extent.start.file is not None and cursor.extent.start.file.name == self.path and \
            not self.is_in_macro(start, end)

    def asks_for_a_defect(self, start, end):
        text = self.text(start, end)
        return ASKS_FOR_A_DEFECT.search(text) or any(re.search(rb"\b" + name + rb"\b", text) for name in self.defects)

    def is_only_with_a_defect(self, start, end):
        text = self.text(start, end)
        return ONLY_WITH_A_DEFECT.fullmatch(text) or text in self.defects

    # -- places found

    def add(self, kind, start, end, changes):
        """Adds a place. Each change gives the pieces, the part shown as changed, and its replacement."""
        place = []
        for pieces, shown_start, shown_end, becomes in changes:
            first = self.source.rfind(b"\n", 0, start) + 1
            last = self.source.find(b"\n", end)
            line = b"".join([self.source[first:shown_start], b"[-", self.source[shown_start:shown_end], b"-]{+",
                             becomes, b"+}", self.source[shown_end:last]])
            place.append({"file": self.file, "line": self.source.count(b"\n", 0, shown_start) + 1, "kind": kind,
                          "function": self.function, "change": b" ".join(line.split()).decode(), "constexpr": self.is_constexpr,
                          "start": start, "end": end, "pieces": pieces})
        if place:
            self.places.append(place)

    @staticmethod
    def class_of(cursor):
        """`Outer::Inner::` of a member, wherever it is defined."""
        name, parent = "", cursor.semantic_parent
        while parent is not None and parent.kind.name in CLASSES:
            name, parent = parent.spelling.split("<")[0] + "::" + name, parent.semantic_parent
        return name

    def declaration(self, cursor):
        kind = cursor.kind.name
        if kind in FUNCTIONS:
            children = list(cursor.get_children())
            if not children or not cursor.is_definition():
                return
            body = children[-1]
            start, _ = self.range(cursor)
            head = self.text(start, self.range(body)[0])
            self.function = self.class_of(cursor) + cursor.spelling.split("<")[0]
            self.defects = set(NAMES_A_DEFECT.findall(self.text(*self.range(body))))
            self.is_constexpr = re.search(rb"\bconst(expr|eval)\b", head) is not None
            self.returns_nothing = cursor.result_type.spelling == "void" or kind in ("CONSTRUCTOR", "DESTRUCTOR")
            for child in children:
                if child.kind.is_expression() or child.kind.is_statement():
                    self.visit(child, [])
        elif kind in SCOPES:
            for child in cursor.get_children():
                self.declaration(child)
        elif kind == "FIELD_DECL" and not cursor.is_bitfield():
            self.function, self.is_constexpr, self.returns_nothing, self.defects = self.class_of(cursor) + cursor.spelling, True, False, set()
            children = list(cursor.get_children())
            if children and children[-1].kind.is_expression() and b"=" in self.text(*self.range(cursor)):
                self.visit(children[-1], [])

    # -- expressions and statements; `above`: the enclosing cursors within the function

    def visit(self, cursor, above):
        kind = cursor.kind.name
        start, end = self.range(cursor)
        if kind in ("PARM_DECL", "STATIC_ASSERT") or (start < end and self.is_in_macro(start, end)):
            return
        if kind == "VAR_DECL" and re.search(rb"\bconstexpr\b", self.text(start, cursor.location.offset)):
            return
        children = list(cursor.get_children())
        skipped = ()
        if kind == "LAMBDA_EXPR":
            # A lambda has its own exits, and its return type is not known here.
            saved, self.returns_nothing = self.returns_nothing, False
            for child in children:
                self.visit(child, [])
            self.returns_nothing = saved
            return
        if self.is_mutable(cursor):
            if kind == "BINARY_OPERATOR":
                if any(self.is_only_with_a_defect(*self.range(c)) for c in children) and self.between(cursor, children)[0] == "&&":
                    return
                self.binary(cursor, children)
            elif kind == "COMPOUND_ASSIGNMENT_OPERATOR":
                self.compound(cursor, children)
            elif kind == "UNARY_OPERATOR":
                self.unary(cursor, children)
            elif kind in ("IF_STMT", "CONDITIONAL_OPERATOR"):
                skipped = self.condition(cursor, children)
            elif kind in ("INTEGER_LITERAL", "FLOATING_LITERAL", "CXX_BOOL_LITERAL_EXPR"):
                self.literal(cursor)
            elif kind == "CALL_EXPR":
                self.arguments(cursor)
            self.statement(cursor, above)
        if kind == "CASE_STMT":
            skipped = (children[0],)
        for child in children:
            if not any(child == s for s in skipped):
                self.visit(child, above + [cursor])

    def between(self, cursor, children):
        """The operator between two operands, and the ranges of all three; None if the text does not match them."""
        if len(children) != 2:
            return None
        (a, b), (c, d) = self.range(children[0]), self.range(children[1])
        if (a, d) != self.range(cursor) or b > c:
            return None
        gap = self.text(b, c)
        if b"//" in gap or b"/*" in gap or not gap.strip():
            return None
        at = b + len(gap) - len(gap.lstrip())
        return gap.strip().decode(), (a, b), (at, at + len(gap.strip())), (c, d)

    def call(self, name, original, changed, a, token, b):
        return [f"{OURS}{name}<{original}, {changed}, {{n}}>(", list(a), self.text(a[1], token[0]).decode() + ",",
                self.text(token[1], b[0]).decode(), list(b), ")"]

    def binary(self, cursor, children):
        found = self.between(cursor, children)
        if not found:
            return
        name, a, token, b = found
        start, end = a[0], b[1]
        if self.asks_for_a_defect(start, end):
            return
        if name in RELATIONAL or name in ARITHMETIC:
            changes = []
            # Only integers have these operators; a template's type may have none.
            is_integer = self.is_integer(children[0]) and self.is_integer(children[1])
            for changed in RELATIONAL.get(name) or ARITHMETIC[name]:
                if not is_integer and changed in (1, -1, "%", "&", "|", "<<", ">>"):
                    continue
                if isinstance(changed, int):
                    by = f"{OURS}OffBy<{operator(name)}, {changed}>"
                    changes.append((self.call("binary", operator(name), by, a, token, b), end, end, b" %+d" % changed))
                else:
                    changes.append((self.call("binary", operator(name), operator(changed), a, token, b), *token, changed.encode()))
            self.add("relational" if name in RELATIONAL else "arithmetic", start, end, changes)
        elif name in ("&&", "||"):
            negated = f"{OURS}negated<{{n}}>("
            pieces = [negated + negated, list(a), ")", self.text(a[1], b[0]).decode(), negated, list(b), "))"]
            self.add("joined", start, end, [(pieces, *token, b"||" if name == "&&" else b"&&")])
            neutral = "true" if name == "&&" else "false"
            for part in (a, b):
                self.add("part", *part, [([f"{OURS}replaced<{{n}}>(", list(part), f", {neutral})"], *part, neutral.encode())])

    @staticmethod
    def is_integer(cursor):
        return cursor.type.get_canonical().kind.name in INTEGERS

    def compound(self, cursor, children):
        found = self.between(cursor, children)
        if not found or found[0][:-1] not in ARITHMETIC or children[0].type.get_canonical().kind.name == "POINTER":
            return
        name, a, token, b = found
        changed = ARITHMETIC[name[:-1]][0]
        if changed in ("%", "&", "|", "<<", ">>") and not (self.is_integer(children[0]) and self.is_integer(children[1])):
            return
        pieces = self.call("compound", operator(name[:-1]), operator(changed), a, token, b)
        self.add("arithmetic", a[0], b[1], [(pieces, *token, changed.encode() + b"=")])

    def unary(self, cursor, children):
        start, end = self.range(cursor)
        if len(children) == 1 and self.text(start, start + 1) == b"-" and self.range(children[0])[0] > start:
            self.add("arithmetic", start, end, [([f"{OURS}plus<{{n}}>(", [start, end], ")"], start, start + 1, b"")])

    def condition(self, cursor, children):
        """Adds its negation; returns the children to skip."""
        start, end = self.range(cursor)
        if cursor.kind.name == "IF_STMT" and re.match(rb"if\s+constexpr\b", self.text(start, end)):
            return children[:1]
        if not children or not children[0].kind.is_expression() or not self.is_mutable(children[0]):
            return ()
        a, b = self.range(children[0])
        if self.asks_for_a_defect(a, b):
            return children[1:2]
        # A comparison has mutants of its own.
        if children[0].kind.name != "BINARY_OPERATOR":
            self.add("condition", a, b, [([f"{OURS}negated<{{n}}>(", [a, b], ")"], a, b, b"!(" + self.text(a, b) + b")")])
        return ()

    def literal(self, cursor):
        start, end = self.range(cursor)
        text = self.text(start, end)
        match = LITERAL.fullmatch(text)
        if not match:
            return
        if match[1]:
            changed = (b"1" if match[1] == b"0" else b"0") + match[2]
        elif match[3]:
            changed = (b"1.0" if match[3] == b"0" else b"0.0") + match[4]
        else:
            changed = b"false" if text == b"true" else b"true"
        self.add("constant", start, end, [([f"{OURS}replaced<{{n}}>(", [start, end], f", {changed.decode()})"], start, end, changed)])

    def arguments(self, cursor):
        start, end = self.range(cursor)
        text = self.text(start, end)
        if cursor.spelling in SYMMETRIC or cursor.spelling.startswith("operator") or len(text) > 400 or b"//" in text or \
                b'R"' in text or self.asks_for_a_defect(start, end) or text[-1:] not in b")}":
            return
        given = [a for a in cursor.get_arguments() if a is not None]
        changes = []
        for first, second in zip(given, given[1:]):
            (a, b), (c, d) = self.range(first), self.range(second)
            kinds = [re.sub(r"\bconst\b|[&\s]", "", x.type.get_canonical().spelling) for x in (first, second)]
            if not start < a < b <= c < d < end or kinds[0] != kinds[1] or kinds[0] in ("", "void") or "dependent" in kinds[0] or \
                    self.text(b, c).strip() != b"," or self.text(a, b) == self.text(c, d) or \
                    self.text(a, b) == self.text(c, d).replace(b"end()", b"begin()"):
                continue
            exchanged = [["line", start, a], ["line", c, d], ", ", ["line", a, b], ["line", d, end]]
            pieces = [f"({OURS}on<{{n}}>() ? ", *exchanged, " : ", [start, end], ")"]
            changes.append((pieces, a, d, self.text(c, d) + b", " + self.text(a, b)))
        self.add("arguments", start, end, changes)

    def statement(self, cursor, above):
        """Leaves out an expression, or a jump out of an `if` that more code follows."""
        kind = cursor.kind.name
        if not above or (kind not in JUMPS and kind not in EXPRESSION_STATEMENTS):
            return
        parent = above[-1].kind.name
        is_body = parent in ("COMPOUND_STMT", "CASE_STMT", "DEFAULT_STMT") or \
            (parent in LOOPS | {"IF_STMT"} and self.is_branch(cursor, above[-1]))
        start, end = self.range(cursor)
        semicolon = re.compile(rb"\s*;").match(self.source, end)
        if not is_body or not semicolon or (kind in JUMPS and not self.is_early(cursor, above)):
            return
        end = semicolon.end()
        pieces = [f"{{ if (!{OURS}on<{{n}}>()) ", [start, end], " }"]
        self.add("exit" if kind in JUMPS else "statement", start, end, [(pieces, start, end, b";")])

    def is_branch(self, cursor, parent):
        children = list(parent.get_children())
        position = next(i for i, child in enumerate(children) if child == cursor)
        if parent.kind.name == "IF_STMT":
            return position > 0 and not children[0].kind.is_declaration()
        return position == len(children) - 1 and parent.kind.name != "DO_STMT"

    def is_early(self, cursor, above):
        block = list(above)
        if block[-1].kind.name == "COMPOUND_STMT":
            if list(block[-1].get_children())[-1] != cursor:
                return False
            branch = block.pop()
        else:
            branch = cursor
        if not block or block[-1].kind.name != "IF_STMT":
            return False
        parts = list(block[-1].get_children())
        if parts[-1] != branch or len([p for p in parts if p.kind.is_statement()]) > 1:
            return False
        choice = block.pop()
        if not block:
            return False
        if block[-1].kind.name == "COMPOUND_STMT" and list(block[-1].get_children())[-1] != choice:
            return True
        return self.returns_nothing or any(b.kind.name in LOOPS for b in block)
