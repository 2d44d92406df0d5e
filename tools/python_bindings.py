"""The declarations of amp.h and amp_cuda.cuh for Python's ctypes: python3 tools/python_bindings.py [CC] > _amp.py

The header goes through the C preprocessor, so the macros that make its enums are expanded by a compiler; what is left are typedefs of
structs, enums and function pointers, and extern functions, which are read here. `make python` writes the result beside amp/__init__.py
and libamp.so, so that no copy of it can be older than the header. --types: the same as a stub file, _amp.pyi, for type checkers and editors.
--sizes: a C program that prints the size of each struct and the offset of each field; tests/python_amp.py compares them.
"""
import ctypes as C
import keyword
import os
import re
import shlex
import subprocess
import sys

BASE = {
    "void": None, "char": "C.c_char", "int": "C.c_int", "unsigned": "C.c_uint", "unsigned int": "C.c_uint", "float": "C.c_float",
    "double": "C.c_double", "size_t": "C.c_size_t", "ptrdiff_t": "C.c_ssize_t", "long": "C.c_long", "long long": "C.c_longlong",
    "unsigned long": "C.c_ulong", "unsigned long long": "C.c_ulonglong", "unsigned char": "C.c_ubyte", "short": "C.c_short",
}
BASE.update({f"{u}int{n}_t": f"C.c_{u}int{n}" for u in ("u", "") for n in (8, 16, 32, 64)})


def preprocessed(cc):
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
    text = '#include "amp_cuda.cuh"\n'
    lines = subprocess.run([*cc, "-std=c99", "-E", "-dD", "-I", top, "-xc", "-"], input=text, capture_output=True, text=True, check=True).stdout
    kept, macros, inside = [], {}, False
    for line in lines.split("\n"):  # only what stands in the two headers: line markers name them
        marker = re.match(r'# \d+ "(.*?)"', line)
        macro = re.match(r"#define (AMP_[A-Z0-9_]+) +(.+)$", line)
        if marker:
            inside = os.path.basename(marker.group(1)) in ("amp.h", "amp_cuda.cuh")
        elif inside and macro:
            macros[macro.group(1)] = macro.group(2)
        elif inside and not line.startswith("#"):
            kept.append(line)
    return re.sub(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", " ".join(kept)), macros


def items(text):
    """Top-level declarations, and definitions with their bodies."""
    start = depth = 0
    for i, c in enumerate(text):
        if c in "{(":
            depth += 1
        elif c in "})":
            depth -= 1
            if depth == 0 and c == "}" and re.match(r"\s*(static|extern\s+inline|inline)\b", text[start:i]):
                yield text[start:i + 1].strip()
                start = i + 1
        elif c == ";" and depth == 0:
            yield text[start:i].strip()
            start = i + 1


class Header:
    def __init__(self, text, macros):
        self.known, self.out, self.constants, self.structs, self.functions = dict(BASE), [], {}, {}, {}
        self.typed = []  # of a stub file
        for item in items(text):
            self.item(re.sub(r"\s+", " ", item))
        for name, value in macros.items():  # those that are integers
            try:
                self.constants[name] = self.value(value.replace("(size_t)-1", str(C.c_size_t(-1).value)).replace("(size_t)", ""))
            except (NameError, SyntaxError, TypeError, ValueError):
                pass

    def item(self, s):
        enum = re.match(r"typedef enum (\w*) ?\{(.*)\} ?(\w+)$", s) or re.match(r"enum ?(\w*) ?\{(.*)\}( ?)$", s)
        struct = re.match(r"typedef struct (\w+) ?\{(.*)\} ?(\w+)$", s) or re.match(r"struct (\w+) ?\{(.*)\}( ?)$", s)
        opaque = re.match(r"typedef struct (\w+) (\w+)$", s)
        foreign = re.match(r"struct (\w+)$", s) or re.match(r"typedef struct \w+ ?\* ?(\w+)$", s)
        pointer = re.match(r"typedef (.*?)\( ?\* ?(\w+) ?\) ?\((.*)\)$", s)
        alias = re.match(r"typedef (\w[\w ]*?) (\w+)$", s)
        function = re.match(r"extern (.*?)(\w+) ?\((.*)\)$", s)
        if enum:
            self.enum(enum.group(2))
            if enum.group(3).strip():
                self.known[enum.group(3)] = "C.c_int"
        elif struct:
            self.struct(struct.group(1), struct.group(2))
        elif opaque:
            self.out.append(f"class {opaque.group(2)}(C.Structure):\n    pass\n")
            self.typed.append(f"class {opaque.group(2)}(C.Structure): ...\n")
            self.known[opaque.group(2)] = opaque.group(2)
        elif foreign:  # a struct of CUDA's, of which only pointers are used; or such a pointer
            self.known[foreign.group(1)] = "C.c_void_p" if "*" in s else None
        elif pointer:
            self.out.append(f"{pointer.group(2)} = {self.callback(pointer.group(1), pointer.group(3))}\n")
            self.typed.append(f"{pointer.group(2)}: Any\n")
            self.known[pointer.group(2)] = pointer.group(2)
        elif alias:
            self.known[alias.group(2)] = self.type(alias.group(1))
        elif function:
            self.function(function.group(2), function.group(1), function.group(3))

    def enum(self, body):
        value = -1
        for part in body.split(","):
            name, _, text = part.strip().partition("=")
            if not name:
                continue
            value = self.value(text) if text else value + 1
            self.constants[name.strip()] = value

    def value(self, text):
        text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
        return int(eval(text, {"__builtins__": {}}, self.constants))  # pylint: disable=eval-used

    def length(self, text):
        """Of an array, as Python: sizes are known when that runs."""
        if "sizeof" not in text:
            return str(self.value(text))
        text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text).replace("/", "//")
        text = re.sub(r"\bsizeof ?\( ?\( ?(\w+) ?\* ?\) ?0 ?\) ?-> ?(\w+)", r"C.sizeof(dict(\1._fields_)['\2'])", text)
        return re.sub(r"\bsizeof ?\( ?(\w+) ?\)", r"C.sizeof(\1)", text)

    def type(self, text):
        text = re.sub(r"\b(const|volatile|struct|enum|extern|restrict|__restrict|__extension__)\b", " ", text)
        stars = text.count("*")
        name = re.sub(r"\s+", " ", text.replace("*", " ")).strip()
        if name not in self.known:
            raise SystemExit(f"python_bindings: the type {name!r} is not known")
        kind = self.known[name]
        if stars and kind in (None, "C.c_char"):
            kind, stars = ("C.c_char_p" if kind else "C.c_void_p"), stars - 1
        for _ in range(stars):
            kind = f"C.POINTER({kind})"
        return kind

    def callback(self, result, arguments):
        kinds = [self.type(result)] + [self.type(self.split(a)[0]) for a in self.arguments(arguments)]
        return "C.CFUNCTYPE(" + ", ".join(str(k) for k in kinds) + ")"

    def arguments(self, text):
        parts, depth, start = [], 0, 0
        for i, c in enumerate(text + ","):
            depth += (c == "(") - (c == ")")
            if c == "," and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 1
        return [p for p in parts if p not in ("", "void", "...")]  # of a variadic function: those that have names

    @staticmethod
    def split(declaration):
        """type, name, [lengths] of "const T *name[2][3]"."""
        lengths = re.findall(r"\[(.*?)\]", declaration)
        declaration = re.sub(r"\[.*?\]", "", declaration).strip()
        m = re.match(r"(.*?)(\w+)$", declaration)
        if not m or not m.group(1).strip():
            return declaration, "", lengths
        return m.group(1), m.group(2), lengths

    def struct(self, name, body):
        fields, declared = [], name in self.known
        self.known[name] = name  # a field may point to its own kind
        for part in (p.strip() for p in body.split(";")):
            if not part:
                continue
            call = re.match(r"(.*?)\( ?\* ?(\w+) ?\) ?\((.*)\)$", part)
            if call:
                fields.append((call.group(2), self.callback(call.group(1), call.group(3))))
                continue
            first, *more = part.split(",")
            base, field, lengths = self.split(first.strip())
            for text in [None] + more:
                stars = ""
                if text is not None:
                    stars, field, lengths = self.split("# " + text.strip())
                    stars = stars.replace("#", "")
                kind = self.type((base if text is None else base.replace("*", "")) + stars)
                for length in reversed(lengths):
                    kind = f"({kind} * ({self.length(length)}))"
                fields.append((field, kind))
        lines = "".join(f"    ({f!r}, {k}),\n" for f, k in fields)
        self.out.append(("" if declared else f"class {name}(C.Structure):\n    pass\n\n\n") + f"{name}._fields_ = [\n{lines}]\n")
        self.structs[name] = [f for f, _ in fields]
        self.typed = [t for t in self.typed if t != f"class {name}(C.Structure): ...\n"]
        self.typed.append(f"class {name}(C.Structure):\n" + "".join(f"    {f}: {annotation(k)}\n" for f, k in fields if not taken(f)))

    def function(self, name, result, arguments):
        kinds = [self.type(self.pointer(a)) for a in self.arguments(arguments)]
        names = [self.split(a)[1] for a in self.arguments(arguments)]
        given = "".join(f", {n}{'_' * taken(n)}: {annotation(k, True)}" for n, k in zip(names, kinds))
        self.functions[name] = f"    {name!r}: ({self.type(result)}, [{', '.join(map(str, kinds))}]),\n"
        self.typed.append(f"    def {name}(self{given}) -> {annotation(self.type(result))}: ...\n")

    def pointer(self, argument):
        if "(" in argument:
            raise SystemExit(f"python_bindings: {argument!r}")
        kind, _, lengths = self.split(argument)
        return kind + "*" * bool(lengths)


def taken(name):
    """A name of Python's own: such a field is reached by getattr alone."""
    return keyword.iskeyword(name) or name == "self"


def annotation(kind, given=False):
    """What a type checker reads for a ctypes type: a field's, a result's, or an argument's, which ctypes converts."""
    if kind is None:
        return "None"
    if kind in ("C.c_float", "C.c_double"):
        return "float"
    if kind == "C.c_char_p":
        return "Text"
    if kind == "C.c_void_p":
        return "Any" if given else "int | None"
    if kind.startswith("(") or kind.startswith("C.POINTER") or kind.startswith("C.CFUNCTYPE"):
        return "Any"
    return "int" if kind.startswith("C.c_") else kind


def print_types(header):
    functions = [t for t in header.typed if t.startswith("    def ")]
    print('"""Made from amp.h by tools/python_bindings.py; do not edit."""\nimport ctypes as C\nfrom typing import Any\n\nText = bytes | None\n')
    print("".join(f"{name}: int\n" for name in header.constants))
    print("\n".join(t for t in header.typed if not t.startswith("    def ")))
    print("FUNCTIONS: dict[str, tuple[Any, list[Any]]]\n\nclass Library(C.CDLL):\n" + "".join(functions))


def main():
    words = [w for w in sys.argv[1:] if w not in ("--sizes", "--types")]
    header = Header(*preprocessed(words or shlex.split(os.environ.get("CC", "cc"))))
    if len(header.functions) < 60 or "amp_step_desc" not in header.structs:
        raise SystemExit("python_bindings: amp.h was not understood")
    if "--types" in sys.argv:
        print_types(header)
        return
    if "--sizes" in sys.argv:
        print('#include "amp_cuda.cuh"\n#include <stdio.h>\n#include <stddef.h>\nint main(void) {')
        for name, fields in header.structs.items():
            print(f'    printf("{name} %zu", sizeof({name}));')
            for f in fields:
                print(f'    printf(" {f}=%zu", offsetof({name}, {f}));')
            print('    printf("\\n");')
        for name, value in header.constants.items():
            print(f'    printf("{name} {value} %s\\n", (unsigned long long){name} == {value}{"ull" * (value >= 0)} ? "" : "is another number");')
        print("    return 0;\n}")
        return
    print('"""Made from amp.h by tools/python_bindings.py; do not edit."""\nimport ctypes as C\n')
    for name, value in header.constants.items():
        print(f"{name} = {value}")
    print("\n" + "\n".join(header.out))
    print("FUNCTIONS = {\n" + "".join(header.functions.values()) + "}")


if __name__ == "__main__":
    main()
